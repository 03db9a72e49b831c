package core

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// featureName is the name of something that a node can do.
var featureName = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*(\/[a-zA-Z][a-zA-Z0-9]*)*$`)

func node(val *rule.Validation, _ rule.Value) {
	spec := object.Map(val.Obj, "spec")
	nodeAnnotations(val)
	taints(val, rule.Objects(spec["taints"]), field.NewPath("metadata", "taints")) // as in Kubernetes
	nodeStatus(val)
	if n, ok := object.Int(object.Map(val.Obj, "status", "nodeInfo", "swap"), "capacity"); ok && n <= 0 {
		val.Invalid(field.NewPath("metadata", "nodeSwapStatus", "capacity"), n, "must be greater than zero")
	}
	ranges, path := rule.Strings(spec["podCIDRs"]), field.NewPath("spec", "podCIDRs")
	for i, r := range ranges {
		val.Errs = append(val.Errs, val.CIDR(path.Index(i), r, nil)...)
	}
	if len(ranges) > 1 {
		two, err := netutils.IsDualStackCIDRStrings(ranges)
		if err != nil {
			val.Add(field.InternalError(path,
				fmt.Errorf("invalid PodCIDRs. failed to check with dual stack with error:%v", err)))
		}
		if !two || len(ranges) > 2 {
			val.Invalid(path, ranges, "may specify no more than one CIDR for each IP family")
		}
	}
}

func taints(val *rule.Validation, list []object.Object, path *field.Path) {
	seen := map[string]bool{}
	for i, t := range list {
		at, key, value, effect := path.Index(i), object.String(t, "key"), object.String(t, "value"),
			object.String(t, "effect")
		val.Invalids(at.Child("key"), key, validation.IsQualifiedName(key))
		if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
			val.Invalid(at.Child("value"), value, strings.Join(wrong, ";"))
		}
		if effect == "" {
			val.Required(at.Child("effect"), "")
		} else {
			pod.CheckTaintEffect(val, effect, at.Child("effect"))
		}
		pair := key + "\x00" + effect
		if seen[pair] {
			e := field.Duplicate(at, t)
			e.Detail = "taints must be unique by key and effect pair"
			val.Add(e)
		}
		seen[pair] = true
	}
}

func nodeStatus(val *rule.Validation) {
	status, path := object.Map(val.Obj, "status"), field.NewPath("status")
	for _, list := range []string{"capacity", "allocatable"} {
		for _, name := range object.Keys(object.Map(status, list)) {
			pod.CheckQuantity(val, name, object.Map(status, list)[name], path.Child(list, name))
		}
	}
	features := rule.Strings(status["declaredFeatures"])
	for i, f := range features {
		at := path.Child("declaredFeatures")
		switch {
		case len(f) > 253:
			val.Invalid(at.Index(i), f, fmt.Sprintf("invalid feature name %q: must be no more than 253 characters", f))
		case !featureName.MatchString(f):
			val.Invalid(at.Index(i), f,
				fmt.Sprintf(
					"invalid feature name %q: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes", f))
		}
		if i+1 < len(features) {
			switch next := features[i+1]; {
			case f == next:
				val.Duplicate(at.Index(i+1), next)
			case f > next:
				val.Invalid(at.Index(i+1), next, "list must be sorted alphabetically")
			}
		}
	}
}

// nodeUpdate checks that the pod CIDRs and the provider ID of a node do not change once set.
func nodeUpdate(val *rule.Validation, _ rule.Value) {
	spec, was, path := object.Map(val.Obj, "spec"), object.Map(val.Old, "spec"), field.NewPath("spec")
	nodeAnnotations(val)
	nodeStatus(val)
	seen := map[string]bool{}
	for i, a := range rule.Objects(object.Map(val.Obj, "status")["addresses"]) {
		form, _ := json.Marshal(a)
		if seen[string(form)] {
			val.Duplicate(field.NewPath("status", "addresses").Index(i), a)
		}
		seen[string(form)] = true
	}
	const stays = "node updates may not change podCIDR except from \"\" to valid"
	if old, now := rule.Strings(was["podCIDRs"]), rule.Strings(spec["podCIDRs"]); len(old) > 0 {
		if len(old) != len(now) {
			val.Forbidden(path.Child("podCIDRs"), stays)
		} else {
			for i := range old {
				if old[i] != now[i] {
					val.Forbidden(path.Child("podCIDRs"), stays)
				}
			}
		}
	}
	switch id, now := object.String(was, "providerID"), object.String(spec, "providerID"); {
	case id == "" || id == now:
	case now == "":
		val.Invalid(path.Child("providerID"), nil, "field cannot be cleared once set")
	default:
		val.Invalid(path.Child("providerID"), nil, "field cannot be modified once set")
	}
	nodeConfig(val)
	taints(val, rule.Objects(spec["taints"]), field.NewPath("metadata", "taints"))
	if object.String(spec, "externalID") != object.String(was, "externalID") {
		val.Forbidden(path.Child("externalID"), "may not be updated")
	}
}

// nodeConfig validates the configSource, which no kubelet reads any more.
func nodeConfig(val *rule.Validation) {
	if source := object.Map(val.Obj, "spec", "configSource"); source != nil {
		configSource(val, source, false, field.NewPath("spec", "configSource"))
	}
	config := object.Map(val.Obj, "status", "config")
	for _, name := range []string{"assigned", "active", "lastKnownGood"} {
		if source := object.Map(config, name); source != nil {
			configSource(val, source, true, field.NewPath("status", "config", name))
		}
	}
}

func configSource(val *rule.Validation, source object.Object, inStatus bool, path *field.Path) {
	from := object.Map(source, "configMap")
	if from == nil {
		val.Invalid(path, source, "exactly one reference subfield must be non-nil")
		return
	}
	path = path.Child("configMap")
	for _, name := range []string{"uid", "resourceVersion"} {
		switch set := object.String(from, name) != ""; {
		case set && !inStatus:
			val.Forbidden(path.Child(name), name+" must not be set in spec")
		case !set && inStatus:
			val.Required(path.Child(name), "")
		}
	}
	for _, part := range []struct {
		name  string
		wrong func(string) []string
	}{
		{"namespace", func(s string) []string { return apivalidation.ValidateNamespaceName(s, false) }},
		{"name", validation.IsDNS1123Subdomain},
		{"kubeletConfigKey", validation.IsConfigMapKey},
	} {
		if v := object.String(from, part.name); v == "" {
			val.Required(path.Child(part.name), "")
		} else {
			val.Invalids(path.Child(part.name), v, part.wrong(v))
		}
	}
}

// nodeAnnotations validates the annotations of a node that components read.
func nodeAnnotations(val *rule.Validation) {
	annotations, path := rule.StringMap(object.Map(val.Obj, "metadata")["annotations"]),
		field.NewPath("metadata", "annotations")
	if text := annotations[pod.TaintsAnnotation]; text != "" {
		var annotated []corev1.Taint
		if err := json.Unmarshal([]byte(text), &annotated); err != nil {
			val.Invalid(path, pod.TaintsAnnotation, pod.InternalNames(err))
		} else {
			taints(val, rule.Objects(rule.As[[]any](annotated)), path.Child(pod.TaintsAnnotation))
		}
	}
	if text := annotations[pod.AvoidAnnotation]; text != "" {
		var avoid corev1.AvoidPods
		if err := json.Unmarshal([]byte(text), &avoid); err != nil {
			val.Invalid(path.Child("AvoidPods"), pod.AvoidAnnotation, err.Error())
			return
		}
		for i, p := range avoid.PreferAvoidPods {
			at := path.Child(pod.AvoidAnnotation).Index(i).Child("PodSignature")
			switch owner := p.PodSignature.PodController; {
			case owner == nil:
				val.Required(at, "")
			case owner.Controller == nil || !*owner.Controller:
				val.Invalid(at.Child("PodController", "Controller"), false, "must point to a controller")
			}
		}
	}
}
