package check

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

func nodeFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){"node": node, "nodeUpdate": nodeUpdate}
}

// featureName is the name of something that a node can do.
var featureName = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*(\/[a-zA-Z][a-zA-Z0-9]*)*$`)

func node(j *judgement, _ place) {
	spec := inner(j.obj, "spec")
	j.nodeAnnotations()
	j.taints(objects(spec["taints"]), field.NewPath("metadata", "taints")) // as Kubernetes has it
	j.nodeStatus()
	if n, ok := number(inner(j.obj, "status", "nodeInfo", "swap"), "capacity"); ok && n <= 0 {
		j.invalid(field.NewPath("metadata", "nodeSwapStatus", "capacity"), n, "must be greater than zero")
	}
	ranges, path := texts(spec["podCIDRs"]), field.NewPath("spec", "podCIDRs")
	for i, r := range ranges {
		j.errs = append(j.errs, validation.IsValidCIDRForLegacyField(path.Index(i), r, true, nil)...)
	}
	if len(ranges) > 1 {
		two, err := netutils.IsDualStackCIDRStrings(ranges)
		if err != nil {
			j.add(field.InternalError(path,
				fmt.Errorf("invalid PodCIDRs. failed to check with dual stack with error:%v", err)))
		}
		if !two || len(ranges) > 2 {
			j.invalid(path, ranges, "may specify no more than one CIDR for each IP family")
		}
	}
}

func (j *judgement) taints(list []object, path *field.Path) {
	seen := map[string]bool{}
	for i, t := range list {
		at, key, value, effect := path.Index(i), text1(t, "key"), text1(t, "value"), text1(t, "effect")
		j.invalids(at.Child("key"), key, validation.IsQualifiedName(key))
		if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
			j.invalid(at.Child("value"), value, strings.Join(wrong, ";"))
		}
		if effect == "" {
			j.required(at.Child("effect"), "")
		} else {
			j.taintEffect(effect, at.Child("effect"))
		}
		pair := key + "\x00" + effect
		if seen[pair] {
			e := field.Duplicate(at, t)
			e.Detail = "taints must be unique by key and effect pair"
			j.add(e)
		}
		seen[pair] = true
	}
}

func (j *judgement) nodeStatus() {
	status, path := inner(j.obj, "status"), field.NewPath("status")
	for _, list := range []string{"capacity", "allocatable"} {
		for _, name := range keys(inner(status, list)) {
			j.resourceQuantity(name, inner(status, list)[name], path.Child(list, name))
		}
	}
	features := texts(status["declaredFeatures"])
	for i, f := range features {
		at := path.Child("declaredFeatures")
		switch {
		case len(f) > 253:
			j.invalid(at.Index(i), f, fmt.Sprintf("invalid feature name %q: must be no more than 253 characters", f))
		case !featureName.MatchString(f):
			j.invalid(at.Index(i), f,
				fmt.Sprintf(
					"invalid feature name %q: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes", f))
		}
		if i+1 < len(features) {
			switch next := features[i+1]; {
			case f == next:
				j.duplicate(at.Index(i+1), next)
			case f > next:
				j.invalid(at.Index(i+1), next, "list must be sorted alphabetically")
			}
		}
	}
}

// nodeUpdate: what a controller gives a node, its ranges of addresses and its identity outside, it keeps.
func nodeUpdate(j *judgement, _ place) {
	spec, was, path := inner(j.obj, "spec"), inner(j.old, "spec"), field.NewPath("spec")
	j.nodeAnnotations()
	j.nodeStatus()
	seen := map[string]bool{}
	for i, a := range objects(inner(j.obj, "status")["addresses"]) {
		form, _ := json.Marshal(a)
		if seen[string(form)] {
			j.duplicate(field.NewPath("status", "addresses").Index(i), a)
		}
		seen[string(form)] = true
	}
	const stays = "node updates may not change podCIDR except from \"\" to valid"
	if old, now := texts(was["podCIDRs"]), texts(spec["podCIDRs"]); len(old) > 0 {
		if len(old) != len(now) {
			j.forbidden(path.Child("podCIDRs"), stays)
		} else {
			for i := range old {
				if old[i] != now[i] {
					j.forbidden(path.Child("podCIDRs"), stays)
				}
			}
		}
	}
	if id := text1(was, "providerID"); id != "" && id != text1(spec, "providerID") {
		j.forbidden(path.Child("providerID"), "node updates may not change providerID except from \"\" to valid")
	}
	j.nodeConfig()
	j.taints(objects(spec["taints"]), field.NewPath("metadata", "taints"))
	if text1(spec, "externalID") != text1(was, "externalID") {
		j.forbidden(path.Child("externalID"), "may not be updated")
	}
}
