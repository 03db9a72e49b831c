package scheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mustWeight is the weight of a required affinity of an existing pod to the pod that is scheduled.
const mustWeight = 1

// attraction scores nodes by preferred affinity and anti-affinity between pods, in both directions. It returns nil if
// there is none.
func (r *round) attraction(nodes []*nodeInfo) []int64 {
	sums := map[domain]int64{}
	if len(r.pod.preferences) > 0 {
		for _, other := range r.pods {
			if at := r.nodes[other.node].node; at != nil {
				r.attract(sums, r.pod.preferences, other, at)
			}
		}
	}
	for _, other := range r.attracting {
		at := r.nodes[other.node].node
		if at == nil {
			continue
		}
		for _, t := range other.near {
			r.attract(sums, []preference{{t, mustWeight}}, r.pod, at)
		}
		r.attract(sums, other.preferences, r.pod, at)
	}
	if len(sums) == 0 {
		return nil
	}
	keys := map[string]bool{}
	for d := range sums {
		keys[d.key] = true
	}
	out := make([]int64, len(nodes))
	for at, i := range nodes {
		for key := range keys {
			if value, ok := i.node.Labels[key]; ok {
				out[at] += sums[domain{key, value}]
			}
		}
	}
	return stretched(out)
}

// attract adds the weights of the preferences that match a pod to the sums of the node's domains.
func (r *round) attract(sums map[domain]int64, preferences []preference, p *podInfo, at *corev1.Node) {
	for _, w := range preferences {
		if value, ok := at.Labels[w.key]; ok && w.matches(p, r.labelsOf) {
			sums[domain{w.key, value}] += w.weight
		}
	}
}

// stretched normalizes scores to 0 to 100; all are 0 if they are equal.
func stretched(scores []int64) []int64 {
	least, most := slices.Min(scores), slices.Max(scores)
	for at, s := range scores {
		if scores[at] = 0; most > least {
			scores[at] = int64(100 * (float64(s-least) / float64(most-least)))
		}
	}
	return scores
}
