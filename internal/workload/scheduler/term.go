package scheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// term is a compiled pod affinity term.
type term struct {
	key        string
	selector   labels.Selector
	namespaces []string
	byLabel    labels.Selector // of namespaces; nil selects none
}

// preference is a preferred term with its weight, which is negative for anti-affinity.
type preference struct {
	*term
	weight int64
}

// termsOf returns the affinity terms of a pod.
func termsOf(p *podInfo, a *corev1.Affinity) (near, away []*term, preferences []preference) {
	if a != nil && a.PodAffinity != nil {
		near = newTerms(p, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		for _, t := range a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			preferences = append(preferences, preference{newTerm(&t.PodAffinityTerm, p), int64(t.Weight)})
		}
	}
	if a != nil && a.PodAntiAffinity != nil {
		away = newTerms(p, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		for _, t := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			preferences = append(preferences, preference{newTerm(&t.PodAffinityTerm, p), -int64(t.Weight)})
		}
	}
	return near, away, preferences
}

func newTerms(p *podInfo, all []corev1.PodAffinityTerm) (out []*term) {
	for i := range all {
		out = append(out, newTerm(&all[i], p))
	}
	return out
}

func newTerm(t *corev1.PodAffinityTerm, of *podInfo) *term {
	out := &term{key: t.TopologyKey, selector: selectorOf(t.LabelSelector), namespaces: t.Namespaces}
	if t.NamespaceSelector != nil {
		out.byLabel = selectorOf(t.NamespaceSelector)
	} else if len(t.Namespaces) == 0 {
		out.namespaces = []string{of.namespace}
	}
	return out
}

// selectorOf compiles a selector. An invalid one, which validation rejects, selects nothing.
func selectorOf(s *metav1.LabelSelector) labels.Selector {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}

func (t *term) matches(p *podInfo, labelsOf func(string) map[string]string) bool {
	return t.selector.Matches(labels.Set(p.labels)) && (slices.Contains(t.namespaces, p.namespace) ||
		t.byLabel != nil && t.byLabel.Matches(labels.Set(labelsOf(p.namespace))))
}
