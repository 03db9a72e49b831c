package scheduler

import (
	"math"

	corev1 "k8s.io/api/core/v1"
)

// Default skews of kube-scheduler for pods without topology spread constraints.
const (
	hostSkew = 3
	zoneSkew = 5
)

// evenness scores nodes by the number of pods in their domains, fewer being better. The pods are selected by the pod's
// constraints with ScheduleAnyway or, if it has no constraints at all, by its services and controller. It returns nil
// if there are no constraints.
func (r *round) evenness(nodes []*nodeInfo) []int64 {
	all, strict := r.constraints(corev1.ScheduleAnyway), true
	if len(r.pod.spec.TopologySpreadConstraints) == 0 && r.pod.peers != nil && !r.pod.peers.Empty() {
		strict = false // a node without a zone is a domain of its own
		all = []*constraint{
			r.constraint(corev1.LabelHostname, hostSkew, r.pod.peers),
			r.constraint(corev1.LabelTopologyZone, zoneSkew, r.pod.peers),
		}
	}
	if len(all) == 0 {
		return nil
	}
	out, ignored := make([]int64, len(nodes)), make([]bool, len(nodes))
	hosts := 0
	for at, i := range nodes {
		if ignored[at] = strict && !hasKeys(i.node, all); ignored[at] {
			continue
		}
		hosts++
		for _, c := range all {
			if c.key != corev1.LabelHostname { // hosts are counted by node name
				value, has := i.node.Labels[c.key]
				c.counts[value] = 0
				c.held = c.held || has
			}
		}
	}
	r.countAll(all, strict)
	for _, c := range all {
		c.weight = c.weigh(hosts)
	}
	for at, i := range nodes {
		if !ignored[at] {
			out[at] = unevenness(i, all)
		}
	}
	return inverted(out, ignored)
}

// countAll counts pods by domain, if any candidate node is in a domain: otherwise the counts are of no use, and each
// pod would cost a scan of all nodes.
func (r *round) countAll(all []*constraint, strict bool) {
	for _, c := range all {
		if !c.held {
			continue
		}
		for name, n := range c.on {
			i := r.nodes[name]
			if i == nil || i.node == nil || strict && !hasKeys(i.node, all) {
				continue
			}
			if _, ok := c.counts[i.node.Labels[c.key]]; ok && c.includes(r, i.node) {
				c.counts[i.node.Labels[c.key]] += n
			}
		}
	}
}

// weigh returns the weight of a pod in a domain, which grows with the number of domains.
func (c *constraint) weigh(hosts int) float64 {
	domains := len(c.counts)
	if c.key == corev1.LabelHostname {
		domains = hosts
	}
	return math.Log(float64(domains + 2))
}

// unevenness is the weighted number of pods in a node's domains.
func unevenness(i *nodeInfo, all []*constraint) int64 {
	sum := 0.0
	for _, c := range all {
		value, ok := i.node.Labels[c.key]
		if !ok {
			continue
		}
		n := c.counts[value]
		if c.key == corev1.LabelHostname {
			n = c.on[i.node.Name]
		}
		sum += float64(n)*c.weight + float64(c.skew-1)
	}
	return int64(math.Round(sum))
}

// inverted normalizes scores to 0 to 100, with the lowest score becoming 100. Ignored nodes get 0.
func inverted(scores []int64, ignored []bool) []int64 {
	least, most := int64(math.MaxInt64), int64(0)
	for at, s := range scores {
		if !ignored[at] {
			least, most = min(least, s), max(most, s)
		}
	}
	for at, s := range scores {
		switch {
		case ignored[at]:
			scores[at] = 0
		case most == 0:
			scores[at] = 100
		default:
			scores[at] = 100 * (most + least - s) / most
		}
	}
	return scores
}
