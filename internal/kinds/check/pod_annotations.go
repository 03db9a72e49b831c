package check

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Annotations of pods that older clients use for what has fields today.
const (
	mirrorPod    = corev1.MirrorPodAnnotationKey
	appArmor     = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix
	seccomp      = corev1.SeccompPodAnnotationKey
	seccompOf    = corev1.SeccompContainerAnnotationKeyPrefix
	deletionCost = corev1.PodDeletionCost
)

// wholeNumber is how the deletion cost begins: no plus sign, no leading zero.
var wholeNumber = regexp.MustCompile(`^(0$|[-1-9])`)

func (j *judgement) podAnnotations(annotations map[string]string, spec object, path *field.Path) {
	if v, ok := annotations[mirrorPod]; ok && text1(spec, "nodeName") == "" {
		j.invalid(path.Key(mirrorPod), v, "must set spec.nodeName if mirror pod annotation is set")
	}
	if v := annotations[tolerationsAnnotation]; v != "" {
		j.tolerationsText(v, path)
	}
	if v, ok := annotations[deletionCost]; ok {
		if _, err := strconv.ParseInt(v, 10, 32); (err != nil || !wholeNumber.MatchString(v)) && !j.excused(wholeCost) {
			j.invalid(path.Key(deletionCost), v, "must be a 32bit integer")
		}
	}
	if v, ok := annotations[seccomp]; ok {
		j.seccompText(v, path.Child(seccomp))
	}
	for _, key := range sorted(annotations) {
		if strings.HasPrefix(key, seccompOf) {
			j.seccompText(annotations[key], path.Child(key))
		}
	}
	for _, key := range sorted(annotations) {
		if name, ok := strings.CutPrefix(key, appArmor); ok {
			j.appArmorText(name, annotations[key], spec, path.Key(key))
		}
	}
}

func sorted(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

func (j *judgement) seccompText(v string, path *field.Path) {
	switch file, local := strings.CutPrefix(v, corev1.SeccompLocalhostProfileNamePrefix); {
	case v == corev1.SeccompProfileRuntimeDefault, v == corev1.DeprecatedSeccompProfileDockerDefault,
		v == corev1.SeccompProfileNameUnconfined:
	case local:
		j.invalids(path, file, relative(file))
	default:
		j.invalid(path, v, "must be a valid seccomp profile")
	}
}

func (j *judgement) appArmorText(container, profile string, spec object, path *field.Path) {
	found := false
	containers(spec, nil, func(c object, _ *field.Path) { found = found || text1(c, "name") == container })
	if !found {
		j.invalid(path, container, "container not found")
	}
	known := profile == "" || profile == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault ||
		profile == corev1.DeprecatedAppArmorBetaProfileNameUnconfined
	if !known && !strings.HasPrefix(profile, corev1.DeprecatedAppArmorBetaProfileNamePrefix) {
		j.invalid(path, profile, fmt.Sprintf("invalid AppArmor profile name: %q", profile))
	}
}

// annotationsMatch wants annotations about security profiles to say what the fields say, if there are both.
func (j *judgement) annotationsMatch(meta, spec object, path *field.Path) {
	annotations := pairs(meta["annotations"])
	if len(annotations) == 0 {
		return
	}
	own := inner(spec, "securityContext")
	if v, ok := annotations[seccomp]; ok {
		j.profileMatches("seccomp", v, inner(own, "seccompProfile"), path.Child("securityContext", "seccompProfile"))
	}
	containers(spec, path, func(c object, path *field.Path) {
		if v, ok := annotations[seccompOf+text1(c, "name")]; ok {
			j.profileMatches("seccomp", v, inner(c, "securityContext", "seccompProfile"),
				path.Child("securityContext", "seccompProfile"))
		}
	})
	if text1(inner(spec, "os"), "name") == "windows" {
		return
	}
	containers(spec, path, func(c object, path *field.Path) {
		if v, ok := annotations[appArmor+text1(c, "name")]; ok {
			profile := inner(c, "securityContext", "appArmorProfile")
			if profile == nil {
				profile = inner(own, "appArmorProfile")
			}
			j.profileMatches("apparmor", v, profile, path.Child("securityContext", "appArmorProfile"))
		}
	})
}

func (j *judgement) profileMatches(what, annotation string, profile object, path *field.Path) {
	matches := true
	switch text1(profile, "type") {
	case "Unconfined":
		matches = annotation == "unconfined"
	case "RuntimeDefault":
		matches = annotation == "runtime/default" || what == "seccomp" && annotation == "docker/default"
	case "Localhost":
		var file string
		if file, matches = strings.CutPrefix(annotation, "localhost/"); matches &&
			profile["localhostProfile"] != any(file) {
			j.forbidden(path.Child("localhostProfile"), what+" profile in annotation and field must match")
		}
	}
	if !matches {
		j.forbidden(path.Child("type"), what+" type in annotation and field must match")
	}
}
