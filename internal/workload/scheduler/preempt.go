package scheduler

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// preempt finds the node from which the least has to go for the pod, and what; or why nothing does.
//
// It is kube-scheduler's preemption in a simple form: disruption budgets do not count, and of spreading and affinity
// between pods only what the node's own pods mean is weighed.
func (r *round) preempt(failed failure) (node string, victims []*podInfo, why string) {
	if p := r.pod.spec.PreemptionPolicy; p != nil && *p == corev1.PreemptNever {
		return "", nil, "not eligible due to preemptionPolicy=Never."
	}
	none := failure{nodes: r.count(), reasons: map[string]int{}}
	if rest := r.count() - len(failed.helped); rest > 0 {
		none.reasons["Preemption is not helpful for scheduling"] = rest
	}
	for _, name := range failed.helped {
		found, ok := r.victims(r.nodes[name])
		if !ok {
			none.reasons["No preemption victims found for incoming pod"]++
			continue
		}
		if node == "" || less(found, victims) {
			node, victims = name, found
		}
	}
	if node == "" {
		return "", nil, none.String()
	}
	return node, victims, ""
}

// less reports whether it is better that a go than b: whose highest priority is lower, then whose number.
func less(a, b []*podInfo) bool {
	return cmp.Or(cmp.Compare(a[0].priority, b[0].priority), cmp.Compare(len(a), len(b))) < 0
}

// victims returns which pods have to go from a node, the most important first; false if it is not enough that all of
// less priority do, or if they are going already.
func (r *round) victims(i *nodeInfo) ([]*podInfo, bool) {
	var lower []*podInfo
	for _, p := range i.pods {
		if p.priority < r.pod.priority {
			lower = append(lower, p)
		}
	}
	slices.SortFunc(lower, func(a, b *podInfo) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.key(), b.key()))
	})
	if len(lower) == 0 {
		return nil, false
	}
	rest := &nodeInfo{node: i.node, all: i.all, free: amounts{}, pods: map[string]*podInfo{}}
	rest.free.add(i.free, 1)
	for key, p := range i.pods {
		rest.pods[key] = p
	}
	for _, p := range lower {
		delete(rest.pods, p.key())
		rest.free.add(p.requests, 1)
	}
	if !r.fits(rest) {
		return nil, false
	}
	var victims []*podInfo
	for _, p := range lower { // what is still possible with it stays
		rest.pods[p.key()] = p
		rest.free.add(p.requests, -1)
		if !r.fits(rest) {
			delete(rest.pods, p.key())
			rest.free.add(p.requests, 1)
			victims = append(victims, p)
		}
	}
	return victims, len(victims) > 0
}

// fits reports whether the pod has room on a node. Of its relations to other pods only those on that node can have
// changed, so those are left to the next attempt.
func (r *round) fits(i *nodeInfo) bool {
	short, _ := r.lacks(i)
	return len(short) == 0 && !r.portTaken(i)
}
