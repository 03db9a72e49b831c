package scheduler

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// best returns the node with the highest score; among equal scores the one with the fewest pods, then the first.
func (r *round) best(nodes []*nodeInfo) string {
	if len(nodes) == 1 {
		return nodes[0].node.Name
	}
	best, score, pods := "", int64(math.MinInt64), 0
	for at, s := range r.scores(nodes) {
		if n := len(nodes[at].pods); s > score || s == score && n < pods {
			best, score, pods = nodes[at].node.Name, s, n
		}
	}
	return best
}

// scores returns the score of each node: the weighted sum of the scores of kube-scheduler's default plugins, each from
// 0 to 100. ImageLocality is left out, since simulated nodes have no images.
func (r *round) scores(nodes []*nodeInfo) []int64 {
	total := make([]int64, len(nodes))
	for _, s := range []struct {
		weight int64
		scores []int64 // nil if the plugin skips the pod
	}{
		{3, r.tolerance(nodes)},
		{2, r.preference(nodes)},
		{1, r.leastAllocated(nodes)},
		{2, r.evenness(nodes)},
		{2, r.attraction(nodes)},
		{1, r.balance(nodes)},
	} {
		for at, score := range s.scores {
			total[at] += s.weight * score
		}
	}
	return total
}

// tolerance scores nodes by how few taints they have that the pod had better not be on.
func (r *round) tolerance(nodes []*nodeInfo) []int64 {
	out := make([]int64, len(nodes))
	for at, i := range nodes {
		for t := range i.node.Spec.Taints {
			if taint := &i.node.Spec.Taints[t]; taint.Effect == corev1.TaintEffectPreferNoSchedule &&
				!tolerates(r.pod.spec.Tolerations, taint) {
				out[at]++
			}
		}
	}
	for at, s := range scaled(out) {
		out[at] = 100 - s
	}
	return out
}

// preference scores nodes by the preferred terms of the pod's node affinity.
func (r *round) preference(nodes []*nodeInfo) []int64 {
	a := r.pod.spec.Affinity
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		return nil // it was validated
	}
	out := make([]int64, len(nodes))
	for at, i := range nodes {
		out[at] = terms.Score(i.node)
	}
	return scaled(out)
}

// scaled normalizes scores so that the highest is 100.
func scaled(scores []int64) []int64 {
	if most := slices.Max(scores); most > 0 {
		for at := range scores {
			scores[at] = 100 * scores[at] / most
		}
	}
	return scores
}

// compared are the resources that score nodes.
var compared = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// leastAllocated scores nodes by the fraction of their resources that would be free with the pod.
func (r *round) leastAllocated(nodes []*nodeInfo) []int64 {
	out := make([]int64, len(nodes))
	for at, i := range nodes {
		var sum, kinds int64
		for of, all := range i.size {
			if all > 0 {
				sum += 100 * max(0, all-i.used[of]-r.pod.assumed[of]) / all
				kinds++
			}
		}
		if kinds > 0 {
			out[at] = sum / kinds
		}
	}
	return out
}

// balance scores nodes by how much the pod evens out their CPU and memory usage. It skips pods that request neither.
func (r *round) balance(nodes []*nodeInfo) []int64 {
	if r.pod.requests[corev1.ResourceCPU] == 0 && r.pod.requests[corev1.ResourceMemory] == 0 {
		return nil
	}
	out := make([]int64, len(nodes))
	for at, i := range nodes {
		out[at] = 50 + (50+i.balanced(r.pod.requests)-i.balanced(nil))/2
	}
	return out
}

// balanced is how similar the used fractions of a node's CPU and memory are with additional requests, from 50 to 100.
func (i *nodeInfo) balanced(more amounts) int64 {
	var shares []float64
	for _, name := range compared {
		if all := i.all[name]; all > 0 {
			shares = append(shares, min(1, float64(all-i.free[name]+more[name])/float64(all)))
		}
	}
	if len(shares) < 2 {
		return 100
	}
	return int64((1 - math.Abs((shares[0]-shares[1])/2)) * 100)
}
