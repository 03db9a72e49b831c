package scheduler

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// candidate is a node from which pods may go.
type candidate struct {
	node    string
	victims []*podInfo // the most important first
	// violations is how many of them a disruption budget would rather keep.
	violations int
}

// preempt finds the node from which the least has to go for the pod; or why nothing does. waits is true if it is
// already going.
func (r *round) preempt(failed failure) (best *candidate, why string, waits bool) {
	if p := r.pod.spec.PreemptionPolicy; p != nil && *p == corev1.PreemptNever {
		return nil, "not eligible due to preemptionPolicy=Never.", true
	}
	if slices.Contains(failed.helped, r.pod.nominee) && r.isGoing(r.pod.nominee) {
		return nil, "not eligible due to a terminating pod on the nominated node.", true
	}
	none := failure{nodes: r.count(), reasons: map[string]int{}}
	if rest := r.count() - len(failed.helped); rest > 0 {
		none.reasons["Preemption is not helpful for scheduling"] = rest
	}
	for _, name := range failed.helped {
		found, reasons := r.candidate(name)
		for _, reason := range reasons {
			none.reasons[reason]++
		}
		if found != nil && (best == nil || found.compare(best) < 0) {
			best = found
		}
	}
	if best == nil {
		return nil, none.String(), false
	}
	return best, "", false
}

// isGoing reports whether a pod leaves a node because of preemption.
func (r *round) isGoing(node string) bool {
	return slices.ContainsFunc(r.lower(node), func(p *podInfo) bool { return p.going })
}

// lower returns the pods on a node that have less priority, as they are now.
func (r *round) lower(node string) (out []*podInfo) {
	for _, p := range r.nodes[node].pods {
		if p.priority >= r.pod.priority {
			continue
		}
		if r.refresh != nil {
			r.refresh(p)
		}
		out = append(out, p)
	}
	return out
}

// compare is less than 0 if it is better that c goes than other: by the number of budgets' pods, the highest priority,
// the sum of priorities, the number of pods, and how short the most important ones have run.
func (c *candidate) compare(other *candidate) int {
	return cmp.Or(
		cmp.Compare(c.violations, other.violations),
		cmp.Compare(c.victims[0].priority, other.victims[0].priority),
		cmp.Compare(c.priorities(), other.priorities()),
		cmp.Compare(len(c.victims), len(other.victims)),
		cmp.Compare(other.oldest(), c.oldest()),
	)
}

// priorities is the sum of the victims' priorities, each counted from the least there is, so that fewer pods of a
// negative priority are less.
func (c *candidate) priorities() (sum int64) {
	for _, p := range c.victims {
		sum += int64(p.priority) + math.MaxInt32 + 1
	}
	return sum
}

// oldest returns when the first of the most important victims has started.
func (c *candidate) oldest() int64 {
	first := c.victims[0].started
	for _, p := range c.victims {
		if p.priority == c.victims[0].priority {
			first = min(first, p.started)
		}
	}
	return first
}

// byImportance puts pods first that are to go last.
func byImportance(a, b *podInfo) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.started, b.started), cmp.Compare(a.key(), b.key()))
}

// candidate returns which pods have to go from a node, or why it is not enough that all of less priority do. What is
// asked of the model is asked as if they had gone; it is as it was afterwards.
func (r *round) candidate(node string) (found *candidate, reasons []string) {
	lower := r.lower(node)
	if len(lower) == 0 {
		return nil, []string{"No preemption victims found for incoming pod"}
	}
	for _, p := range lower {
		r.remove(p.key())
	}
	defer func() {
		for _, p := range lower {
			r.add(p, node)
		}
	}()
	if reasons := r.checkAnew(node); len(reasons) > 0 {
		return nil, reasons
	}
	slices.SortFunc(lower, byImportance)
	found = &candidate{node: node}
	guarded, others := r.guarded(lower)
	for at, p := range append(guarded, others...) { // what is still possible with it stays
		if r.add(p, node); len(r.checkAnew(node)) == 0 {
			continue
		}
		r.remove(p.key())
		if found.victims = append(found.victims, p); at < len(guarded) {
			found.violations++
		}
	}
	if len(found.victims) == 0 {
		return nil, []string{"No preemption victims found for incoming pod"}
	}
	slices.SortFunc(found.victims, byImportance)
	return found, nil
}

// checkAnew is check when pods have come or gone meanwhile.
func (r *round) checkAnew(node string) []string {
	now := r
	if r.dependsOnPods {
		now = newRound(r.model, r.pod, r.labelsOf)
	}
	reasons, _ := now.check(r.nodes[node])
	return reasons
}

// guarded parts pods into those of which a disruption budget allows no more to go, and the others. Those that come
// first use a budget first.
func (r *round) guarded(pods []*podInfo) (guarded, others []*podInfo) {
	if r.budgets == nil {
		return nil, pods
	}
	all := r.budgets()
	for _, p := range pods {
		violated := false
		for i := range all {
			if all[i].covers(p) {
				all[i].left--
				violated = violated || all[i].left < 0
			}
		}
		if violated {
			guarded = append(guarded, p)
		} else {
			others = append(others, p)
		}
	}
	return guarded, others
}
