package scheduler

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// budget is a PodDisruptionBudget, with how many more of its pods may go.
type budget struct {
	namespace string
	selector  labels.Selector
	left      int32
	evicted   []string // pods with evictions that are already counted
}

// covers reports whether the removal of a pod counts against the budget.
func (b *budget) covers(p *podInfo) bool {
	return b.namespace == p.namespace && len(p.labels) > 0 && b.selector.Matches(labels.Set(p.labels)) &&
		!slices.Contains(b.evicted, p.name)
}

// budgets returns all budgets with a non-empty selector; an empty selector selects nothing here.
func (s *scheduler) budgets() (out []budget) {
	for _, b := range cluster.PodDisruptionBudgets.ReadAll(s.index, "") {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || selector.Empty() {
			continue
		}
		one := budget{namespace: b.Namespace, selector: selector, left: b.Status.DisruptionsAllowed}
		for name := range b.Status.DisruptedPods {
			one.evicted = append(one.evicted, name)
		}
		out = append(out, one)
	}
	return out
}
