package scheduler

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// constraint is a topologySpreadConstraint.
type constraint struct {
	key      string
	skew     int
	selector labels.Selector
	domains  int // minDomains
	// anywhere also counts nodes that the pod's affinity excludes; untainted skips nodes that the pod's tolerations
	// exclude.
	anywhere, untainted bool
	on                  map[string]int // selected pods, by node
	counts              map[string]int // selected pods, by value of key
	least               int
	own                 int     // 1 if the pod itself is selected
	held                bool    // a candidate node has the key
	weight              float64 // weight of one of the counts, for evenness
}

// constraints returns the constraints of the round's pod with the given action.
func (r *round) constraints(sort corev1.UnsatisfiableConstraintAction) (out []*constraint) {
	for _, c := range r.pod.spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != sort {
			continue
		}
		s := selectorOf(c.LabelSelector)
		for _, key := range c.MatchLabelKeys {
			if value, ok := r.pod.labels[key]; ok {
				s = labels.SelectorFromSet(labels.Set{key: value}).Add(requirements(s)...)
			}
		}
		one := r.constraint(c.TopologyKey, int(c.MaxSkew), s)
		if c.MinDomains != nil {
			one.domains = int(*c.MinDomains)
		}
		one.anywhere = c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
		one.untainted = c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
		out = append(out, one)
	}
	return out
}

func (r *round) constraint(key string, skew int, s labels.Selector) *constraint {
	return &constraint{
		key: key, skew: skew, selector: s, on: r.tally(r.pod.namespace, s), counts: map[string]int{},
	}
}

func requirements(s labels.Selector) []labels.Requirement {
	all, _ := s.Requirements()
	return all
}

// newConstraints returns the hard constraints of the round's pod.
func newConstraints(r *round) []*constraint {
	out := r.constraints(corev1.DoNotSchedule)
	if len(out) == 0 {
		return nil
	}
	for name, i := range r.nodes {
		if i.node == nil || !hasKeys(i.node, out) {
			continue
		}
		for _, c := range out {
			if c.includes(r, i.node) {
				c.counts[i.node.Labels[c.key]] += c.on[name]
			}
		}
	}
	for _, c := range out {
		c.finish(r.pod)
	}
	return out
}

// hasKeys reports whether a node has all labels that constraints are about.
func hasKeys(n *corev1.Node, all []*constraint) bool {
	for _, c := range all {
		if _, ok := n.Labels[c.key]; !ok {
			return false
		}
	}
	return true
}

// includes reports whether the pods of a node count.
func (c *constraint) includes(r *round, n *corev1.Node) bool {
	if !c.anywhere {
		if ok, err := r.required.Match(n); !ok || err != nil {
			return false
		}
	}
	return !c.untainted || r.untolerated(n) == nil
}

func (c *constraint) finish(p *podInfo) {
	if c.selector.Matches(labels.Set(p.labels)) {
		c.own = 1
	}
	c.least = math.MaxInt
	for _, n := range c.counts {
		c.least = min(c.least, n)
	}
	if len(c.counts) == 0 || len(c.counts) < c.domains {
		c.least = 0
	}
}

// overSpread returns why a node is excluded, and whether the reason is a missing label.
func (r *round) overSpread(i *nodeInfo) (reason string, missing bool) {
	const text = "node(s) didn't match pod topology spread constraints"
	for _, c := range r.spread {
		value, ok := i.node.Labels[c.key]
		if !ok {
			return text + " (missing required label)", true
		}
		if c.counts[value]+c.own-c.least > c.skew {
			return text, false
		}
	}
	return "", false
}
