package scheduler

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Weights of the scores of a node, each of which is at most 100.
const (
	allocatedWeight = 1
	affinityWeight  = 2
	taintWeight     = 3
)

// best returns the node with the highest score; among equals that with the fewest pods, then the first.
func (r *round) best(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	var preferred *nodeaffinity.PreferredSchedulingTerms
	most := int64(1)
	if a := r.pod.spec.Affinity; a != nil && a.NodeAffinity != nil {
		terms := a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		preferred, _ = nodeaffinity.NewPreferredSchedulingTerms(terms)
		for _, t := range terms {
			most += int64(t.Weight)
		}
	}
	best, score, pods := "", math.Inf(-1), 0
	for _, name := range names {
		i := r.nodes[name]
		s := allocatedWeight*r.leastAllocated(i) - taintWeight*10*float64(r.disliked(i.node))
		if preferred != nil {
			s += affinityWeight * 100 * float64(preferred.Score(i.node)) / float64(most)
		}
		if s > score || s == score && len(i.pods) < pods {
			best, score, pods = name, s, len(i.pods)
		}
	}
	return best
}

// leastAllocated is how much of a node would be free with the pod, in percent.
func (r *round) leastAllocated(i *nodeInfo) float64 {
	return (r.freeShare(i, corev1.ResourceCPU, 100) + r.freeShare(i, corev1.ResourceMemory, 200<<20)) / 2
}

// freeShare is leastAllocated for one resource. least is what kube assumes of pods that request nothing.
func (r *round) freeShare(i *nodeInfo, name corev1.ResourceName, least int64) float64 {
	all := i.all[name]
	if all == 0 {
		return 0
	}
	return 100 * max(0, float64(i.free[name]-max(r.pod.requests[name], least))/float64(all))
}

// disliked counts the taints of a node that the pod had better not be on.
func (r *round) disliked(n *corev1.Node) (count int) {
	for t := range n.Spec.Taints {
		if taint := &n.Spec.Taints[t]; taint.Effect == corev1.TaintEffectPreferNoSchedule &&
			!tolerates(r.pod.spec.Tolerations, taint) {
			count++
		}
	}
	return count
}
