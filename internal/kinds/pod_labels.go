package kinds

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// spreadByLabels adds to the selectors of a new pod's constraints the labels of its own that they name: pods of one
// revision spread, or gather, among each other.
func spreadByLabels(pod catalog.Object) {
	labels := catalog.At(pod, "metadata", "labels")
	for _, c := range catalog.Objects(catalog.At(pod, "spec")["topologySpreadConstraints"]) {
		addLabels(c, "matchLabelKeys", "In", labels)
	}
	affinity := catalog.At(pod, "spec", "affinity")
	for _, name := range []string{"podAffinity", "podAntiAffinity"} {
		for _, w := range catalog.Objects(catalog.At(affinity,
			name)["preferredDuringSchedulingIgnoredDuringExecution"]) {
			addTermLabels(catalog.At(w, "podAffinityTerm"), labels)
		}
		for _, t := range catalog.Objects(catalog.At(affinity,
			name)["requiredDuringSchedulingIgnoredDuringExecution"]) {
			addTermLabels(t, labels)
		}
	}
}

func addTermLabels(term, labels catalog.Object) {
	addLabels(term, "matchLabelKeys", "In", labels)
	addLabels(term, "mismatchLabelKeys", "NotIn", labels)
}

func addLabels(obj catalog.Object, list, operator string, labels catalog.Object) {
	selector := catalog.At(obj, "labelSelector")
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

// profilesFromAnnotations gives containers the AppArmor profiles that older clients put into annotations.
func profilesFromAnnotations(pod catalog.Object) {
	spec := catalog.At(pod, "spec")
	annotations := catalog.At(pod, "metadata", "annotations")
	if catalog.Text(spec, "os", "name") == "windows" {
		return
	}
	ofPod := catalog.At(spec, "securityContext", "appArmorProfile")
	for _, c := range containersOf(spec) {
		v, ok := annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+catalog.Text(c, "name")].(string)
		if !ok || catalog.At(c, "securityContext", "appArmorProfile") != nil {
			continue
		}
		if profile := profileOf(v); profile != nil && !reflect.DeepEqual(profile, ofPod) {
			child(c, "securityContext")["appArmorProfile"] = profile
		}
	}
}

func profileOf(annotation string) catalog.Object {
	switch file, local := strings.CutPrefix(annotation, corev1.DeprecatedAppArmorBetaProfileNamePrefix); {
	case annotation == corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return catalog.Object{"type": "Unconfined"}
	case annotation == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return catalog.Object{"type": "RuntimeDefault"}
	case local && file != "" && strings.TrimSpace(file) == file && len(file) <= 4095:
		return catalog.Object{"type": "Localhost", "localhostProfile": file}
	}
	return nil
}

// keepObserved keeps which generation of the pod its status and conditions are about, if the client that reports does
// not know.
func keepObserved(status, was catalog.Object) {
	if status["qosClass"] == nil {
		keep(status, was, "qosClass")
	}
	if status["observedGeneration"] == nil {
		keep(status, was, "observedGeneration")
	}
	seen := map[string][]any{}
	for _, c := range catalog.Objects(was["conditions"]) {
		seen[catalog.Text(c, "type")] = append(seen[catalog.Text(c, "type")], c["observedGeneration"])
	}
	for _, c := range catalog.Objects(status["conditions"]) {
		kind := catalog.Text(c, "type")
		if len(seen[kind]) == 0 {
			continue
		}
		if c["observedGeneration"] == nil && seen[kind][0] != nil {
			c["observedGeneration"] = seen[kind][0]
		}
		seen[kind] = seen[kind][1:]
	}
}
