package core

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// spreadByLabels adds to the selectors of a new pod's constraints the values of its own labels under matchLabelKeys and
// mismatchLabelKeys, so that the pods of one revision spread, or gather, among each other.
func spreadByLabels(pod object.Object) {
	labels := object.Map(pod, "metadata", "labels")
	for _, c := range object.Objects(object.Map(pod, "spec")["topologySpreadConstraints"]) {
		addLabels(c, "matchLabelKeys", "In", labels)
	}
	affinity := object.Map(pod, "spec", "affinity")
	for _, name := range []string{"podAffinity", "podAntiAffinity"} {
		for _, w := range object.Objects(object.Map(affinity,
			name)["preferredDuringSchedulingIgnoredDuringExecution"]) {
			addTermLabels(object.Map(w, "podAffinityTerm"), labels)
		}
		for _, t := range object.Objects(object.Map(affinity,
			name)["requiredDuringSchedulingIgnoredDuringExecution"]) {
			addTermLabels(t, labels)
		}
	}
}

func addTermLabels(term, labels object.Object) {
	addLabels(term, "matchLabelKeys", "In", labels)
	addLabels(term, "mismatchLabelKeys", "NotIn", labels)
}

func addLabels(obj object.Object, list, operator string, labels object.Object) {
	selector := object.Map(obj, "labelSelector")
	keys, _ := obj[list].([]any)
	if selector == nil || len(keys) == 0 {
		return
	}
	expressions, _ := selector["matchExpressions"].([]any)
	expressions = slices.Clone(expressions)
	for _, key := range keys {
		name, _ := key.(string)
		if v, ok := labels[name]; ok {
			expressions = append(expressions, map[string]any{"key": name, "operator": operator, "values": []any{v}})
		}
	}
	if len(expressions) > 0 {
		selector["matchExpressions"] = expressions
	}
}

// profilesFromAnnotations sets the AppArmor profiles of containers from annotations of older clients.
func profilesFromAnnotations(obj object.Object) {
	spec := object.Map(obj, "spec")
	annotations := object.Map(obj, "metadata", "annotations")
	if object.String(spec, "os", "name") == "windows" {
		return
	}
	ofPod := object.Map(spec, "securityContext", "appArmorProfile")
	for _, c := range pod.ContainersOf(spec) {
		v, ok := annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+object.String(c,
			"name")].(string)
		if !ok || object.Map(c, "securityContext", "appArmorProfile") != nil {
			continue
		}
		if profile := profileOf(v); profile != nil && !reflect.DeepEqual(profile, ofPod) {
			object.Child(c, "securityContext")["appArmorProfile"] = profile
		}
	}
}

func profileOf(annotation string) object.Object {
	switch file, local := strings.CutPrefix(annotation, corev1.DeprecatedAppArmorBetaProfileNamePrefix); {
	case annotation == corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return object.Object{"type": "Unconfined"}
	case annotation == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return object.Object{"type": "RuntimeDefault"}
	case local && file != "" && strings.TrimSpace(file) == file && len(file) <= 4095:
		return object.Object{"type": "Localhost", "localhostProfile": file}
	}
	return nil
}

// keepObserved keeps the QoS class, and the observed generations of the status and the conditions, if the reporting
// client does not send them.
func keepObserved(status, was object.Object) {
	for _, name := range []string{"qosClass", "observedGeneration"} {
		if status[name] == nil {
			rule.Keep(status, was, name)
		}
	}
	seen := map[string][]any{}
	for _, c := range object.Objects(was["conditions"]) {
		seen[object.String(c, "type")] = append(seen[object.String(c, "type")], c["observedGeneration"])
	}
	for _, c := range object.Objects(status["conditions"]) {
		kind := object.String(c, "type")
		if len(seen[kind]) == 0 {
			continue
		}
		if c["observedGeneration"] == nil && seen[kind][0] != nil {
			c["observedGeneration"] = seen[kind][0]
		}
		seen[kind] = seen[kind][1:]
	}
}
