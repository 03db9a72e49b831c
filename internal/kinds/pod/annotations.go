package pod

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

const wholeCost rule.Exception = "the cost of a deletion is a number"

// Annotations of pods from older clients that have been replaced by fields.
const (
	MirrorPod    = corev1.MirrorPodAnnotationKey
	AppArmor     = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix
	seccomp      = corev1.SeccompPodAnnotationKey
	seccompOf    = corev1.SeccompContainerAnnotationKeyPrefix
	deletionCost = corev1.PodDeletionCost
)

// wholeNumber is how the deletion cost begins: no plus sign, no leading zero.
var wholeNumber = regexp.MustCompile(`^(0$|[-1-9])`)

// ValidateAnnotations checks the annotations of a pod or a template of pods.
func ValidateAnnotations(val *rule.Validation, annotations map[string]string, spec object.Object, path *field.Path) {
	if v, ok := annotations[MirrorPod]; ok && object.String(spec, "nodeName") == "" {
		val.Invalid(path.Key(MirrorPod), v, "must set spec.nodeName if mirror pod annotation is set")
	}
	if v := annotations[tolerationsAnnotation]; v != "" {
		tolerationsText(val, v, path)
	}
	if v, ok := annotations[deletionCost]; ok {
		if _, err := strconv.ParseInt(v, 10, 32); (err != nil || !wholeNumber.MatchString(v)) &&
			!val.Excused(wholeCost) {
			val.Invalid(path.Key(deletionCost), v, "must be a 32bit integer")
		}
	}
	if v, ok := annotations[seccomp]; ok {
		seccompText(val, v, path.Child(seccomp))
	}
	for _, key := range SortedNames(annotations) {
		if strings.HasPrefix(key, seccompOf) {
			seccompText(val, annotations[key], path.Child(key))
		}
	}
	for _, key := range SortedNames(annotations) {
		if name, ok := strings.CutPrefix(key, AppArmor); ok {
			appArmorText(val, name, annotations[key], spec, path.Key(key))
		}
	}
}

// SortedNames returns the keys of a map in order.
func SortedNames(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

func seccompText(val *rule.Validation, v string, path *field.Path) {
	switch file, local := strings.CutPrefix(v, corev1.SeccompLocalhostProfileNamePrefix); {
	case v == corev1.SeccompProfileRuntimeDefault, v == corev1.DeprecatedSeccompProfileDockerDefault,
		v == corev1.SeccompProfileNameUnconfined:
	case local:
		val.Invalids(path, file, rule.Relative(file))
	default:
		val.Invalid(path, v, "must be a valid seccomp profile")
	}
}

func appArmorText(val *rule.Validation, container, profile string, spec object.Object, path *field.Path) {
	found := false
	Containers(spec, nil,
		func(c object.Object, _ *field.Path) { found = found || object.String(c, "name") == container })
	if !found {
		val.Invalid(path, container, "container not found")
	}
	known := profile == "" || profile == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault ||
		profile == corev1.DeprecatedAppArmorBetaProfileNameUnconfined
	if !known && !strings.HasPrefix(profile, corev1.DeprecatedAppArmorBetaProfileNamePrefix) {
		val.Invalid(path, profile, fmt.Sprintf("invalid AppArmor profile name: %q", profile))
	}
}

// CheckAnnotationsMatch requires annotations about security profiles to match the fields, if both are set.
func CheckAnnotationsMatch(val *rule.Validation, meta, spec object.Object, path *field.Path) {
	annotations := rule.StringMap(meta["annotations"])
	if len(annotations) == 0 {
		return
	}
	own := object.Map(spec, "securityContext")
	if v, ok := annotations[seccomp]; ok {
		profileMatches(val, "seccomp", v, object.Map(own, "seccompProfile"),
			path.Child("securityContext", "seccompProfile"))
	}
	Containers(spec, path, func(c object.Object, path *field.Path) {
		if v, ok := annotations[seccompOf+object.String(c, "name")]; ok {
			profileMatches(val, "seccomp", v, object.Map(c, "securityContext", "seccompProfile"),
				path.Child("securityContext", "seccompProfile"))
		}
	})
	if object.String(object.Map(spec, "os"), "name") == "windows" {
		return
	}
	Containers(spec, path, func(c object.Object, path *field.Path) {
		if v, ok := annotations[AppArmor+object.String(c, "name")]; ok {
			profile := object.Map(c, "securityContext", "appArmorProfile")
			if profile == nil {
				profile = object.Map(own, "appArmorProfile")
			}
			profileMatches(val, "apparmor", v, profile, path.Child("securityContext", "appArmorProfile"))
		}
	})
}

func profileMatches(val *rule.Validation, noun, annotation string, profile object.Object, path *field.Path) {
	matches := true
	switch object.String(profile, "type") {
	case "Unconfined":
		matches = annotation == "unconfined"
	case "RuntimeDefault":
		matches = annotation == "runtime/default" || noun == "seccomp" && annotation == "docker/default"
	case "Localhost":
		var file string
		if file, matches = strings.CutPrefix(annotation, "localhost/"); matches &&
			profile["localhostProfile"] != any(file) {
			val.Forbidden(path.Child("localhostProfile"), noun+" profile in annotation and field must match")
		}
	}
	if !matches {
		val.Forbidden(path.Child("type"), noun+" type in annotation and field must match")
	}
}
