package quota

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// podScopes are the properties of a pod that decide about its scopes.
type podScopes struct {
	terminating, bestEffort, crossNamespace bool

	priorityClass string
}

func scopesOfPod(pod *corev1.Pod) podScopes {
	deadline := pod.Spec.ActiveDeadlineSeconds
	return podScopes{
		terminating: deadline != nil && *deadline >= 0, bestEffort: bestEffort(pod),
		crossNamespace: looksElsewhere(pod.Spec.Affinity), priorityClass: pod.Spec.PriorityClassName,
	}
}

func (s podScopes) in(r requirement) (bool, error) {
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return s.terminating, nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return !s.terminating, nil
	case corev1.ResourceQuotaScopeBestEffort:
		return s.bestEffort, nil
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !s.bestEffort, nil
	case corev1.ResourceQuotaScopePriorityClass:
		return named(r, s.priorityClass)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return s.crossNamespace, nil
	}
	return false, nil
}

// bestEffort reports whether a pod requests neither CPU nor memory.
func bestEffort(pod *corev1.Pod) bool {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass == corev1.PodQOSBestEffort
	}
	all := []corev1.ResourceRequirements{}
	if speaksForItself(pod) {
		all = append(all, *pod.Spec.Resources)
	} else {
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			all = append(all, c.Resources)
		}
	}
	for _, r := range all {
		for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if q := list[name]; q.Sign() > 0 {
					return false
				}
			}
		}
	}
	return true
}

// looksElsewhere reports whether an affinity is about the pods of other namespaces.
func looksElsewhere(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	weighted := func(list []corev1.WeightedPodAffinityTerm) {
		for _, t := range list {
			terms = append(terms, t.PodAffinityTerm)
		}
	}
	if p := a.PodAffinity; p != nil {
		terms = append(terms, p.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		terms = append(terms, p.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted(p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool {
		return len(t.Namespaces) > 0 || t.NamespaceSelector != nil
	})
}

// claimScopes are the names of a claim's current, requested and pending VolumeAttributesClass.
type claimScopes []string

func (s claimScopes) in(r requirement) (bool, error) {
	if r.ScopeName != corev1.ResourceQuotaScopeVolumeAttributesClass {
		return false, nil
	}
	if len(s) == 0 {
		return named(r, "")
	}
	for _, class := range s {
		if holds, err := named(r, class); err != nil || holds {
			return holds, err
		}
	}
	return false, nil
}

// named reports whether a requirement holds for an object that names a class, "" for none.
func named(r requirement, class string) (bool, error) {
	operators := map[corev1.ScopeSelectorOperator]selection.Operator{
		corev1.ScopeSelectorOpIn: selection.In, corev1.ScopeSelectorOpNotIn: selection.NotIn,
		corev1.ScopeSelectorOpExists: selection.Exists, corev1.ScopeSelectorOpDoesNotExist: selection.DoesNotExist,
	}
	operator, ok := operators[r.Operator]
	switch {
	case !ok:
		return false, fmt.Errorf("failed to parse and convert selector: %q is not a valid scope selector operator",
			r.Operator)
	case operator == selection.Exists:
		return class != "", nil
	}
	wants, err := labels.NewRequirement(string(r.ScopeName), operator, r.Values)
	if err != nil {
		return false, fmt.Errorf("failed to parse and convert selector: %w", err)
	}
	has := labels.Set{}
	if class != "" {
		has[string(r.ScopeName)] = class
	}
	return wants.Matches(has), nil
}
