package scheduler

import (
	"math"

	corev1 "k8s.io/api/core/v1"
)

// Skews that kube-scheduler tolerates of pods of one workload that do not say how they are to be spread.
const (
	hostSkew = 3
	zoneSkew = 5
)

// evenness scores nodes by how few pods there are where they are, of those from which the pod had better be apart: what
// its constraints with ScheduleAnyway select or, if it has none at all, the pods of its services and controller. It is
// nil if there is nothing to go by.
func (r *round) evenness(nodes []*nodeInfo) []int64 {
	all, strict := r.constraints(corev1.ScheduleAnyway), true
	if len(r.pod.spec.TopologySpreadConstraints) == 0 && r.pod.peers != nil && !r.pod.peers.Empty() {
		strict = false // a node without a zone is one for itself
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
			if c.key != corev1.LabelHostname { // those of a host are counted by its name
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

// countAll counts pods by the values that nodes to choose from have, if any has one: else the counts are of no use, and
// all nodes would be looked at for each pod.
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

// weigh returns how much a pod of a domain counts: more if there are many.
func (c *constraint) weigh(hosts int) float64 {
	domains := len(c.counts)
	if c.key == corev1.LabelHostname {
		domains = hosts
	}
	return math.Log(float64(domains + 2))
}

// unevenness is how many pods there are where a node is.
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

// inverted makes of the lowest score the highest, 100. Nodes that are ignored have 0.
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
