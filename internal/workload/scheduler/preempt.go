package scheduler

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// candidate is a node on which pods may be preempted.
type candidate struct {
	node    string
	victims []*podInfo // the most important first
	// violations is the number of victims that a disruption budget protects.
	violations int
}

// candidateLimit returns the number of candidates that preemption compares: a tenth of the nodes, but at least a
// hundred, the defaults of kube-scheduler.
func candidateLimit(nodes int) int { return max(100, nodes/10) }

// preempt finds the node with the least harmful victims for the pod, or why preemption does not help. waits is true if
// victims are already terminating.
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
	candidates := 0
	for _, name := range failed.helped {
		found, reasons := r.candidate(name)
		for _, reason := range reasons {
			none.reasons[reason]++
		}
		if found != nil && (best == nil || found.compare(best) < 0) {
			best = found
		}
		if found != nil {
			if candidates++; candidates >= candidateLimit(r.count()) {
				break
			}
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

// compare returns less than 0 if c is preferable to other: by the number of budget violations, the highest priority,
// the sum of priorities, the number of pods, and the start time of the most important pods.
func (c *candidate) compare(other *candidate) int {
	return cmp.Or(
		cmp.Compare(c.violations, other.violations),
		cmp.Compare(c.victims[0].priority, other.victims[0].priority),
		cmp.Compare(c.priorities(), other.priorities()),
		cmp.Compare(len(c.victims), len(other.victims)),
		cmp.Compare(other.oldest(), c.oldest()),
	)
}

// priorities is the sum of the victims' priorities, offset by the lowest possible one, so that fewer pods of a negative
// priority have a smaller sum.
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

// byImportance sorts the most important pods first.
func byImportance(a, b *podInfo) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.started, b.started), cmp.Compare(a.key(), b.key()))
}

// candidate returns the pods that must be deleted from a node, or why even the deletion of all pods of lower priority
// is not enough. It changes the model temporarily and restores it.
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
	for at, p := range append(guarded, others...) { // pods that can remain stay
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

// checkAnew is check after the pods of the model have changed.
func (r *round) checkAnew(node string) []string {
	now := r
	if r.dependsOnPods {
		now = newRound(r.model, r.pod, r.labelsOf)
	}
	reasons, _ := now.check(r.nodes[node])
	return reasons
}

// guarded splits pods into pods that a disruption budget does not let go, and the others. Earlier pods use up a budget
// first.
func (r *round) guarded(pods []*podInfo) (guarded, others []*podInfo) {
	if r.budgets == nil {
		return nil, pods
	}
	if r.guards == nil {
		r.guards = r.budgets()
	}
	all := slices.Clone(r.guards)
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
