package scheduler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// budget is a PodDisruptionBudget, with how many more of its pods may go.
type budget struct {
	namespace string
	selector  labels.Selector
	left      int32
	evicted   map[string]metav1.Time // pods with evictions that are already counted, by name
}

// covers reports whether the removal of a pod counts against the budget.
func (b *budget) covers(p *podInfo) bool {
	return b.namespace == p.namespace && len(p.labels) > 0 && b.selector.Matches(labels.Set(p.labels)) &&
		!b.isEvicted(p)
}

func (b *budget) isEvicted(p *podInfo) bool {
	_, evicted := b.evicted[p.name]
	return evicted
}

// budgets returns all budgets with a non-empty selector; an empty selector selects nothing here.
func (s *scheduler) budgets() (out []budget) {
	for _, b := range cluster.PodDisruptionBudgets.ReadAll(s.index, "") {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || selector.Empty() {
			continue
		}
		out = append(out, budget{
			namespace: b.Namespace, selector: selector, left: b.Status.DisruptionsAllowed,
			evicted: b.Status.DisruptedPods,
		})
	}
	return out
}
