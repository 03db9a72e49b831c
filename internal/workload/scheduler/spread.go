package scheduler

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// constraint is a topologySpreadConstraint that must hold.
type constraint struct {
	key      string
	skew     int
	selector labels.Selector
	counts   map[string]int // pods that are selected, by the value of key
	least    int
	own      int // 1 if the pod itself is selected
	domains  int // how many values of key there must be before pods are spread over fewer
}

// newConstraints returns those of the round's pod.
func newConstraints(r *round) (out []*constraint) {
	for _, c := range r.pod.spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		s, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil {
			s = labels.Nothing() // it was validated
		}
		for _, key := range c.MatchLabelKeys {
			if value, ok := r.pod.labels[key]; ok {
				s = labels.SelectorFromSet(labels.Set{key: value}).Add(requirements(s)...)
			}
		}
		one := &constraint{key: c.TopologyKey, skew: int(c.MaxSkew), selector: s, counts: map[string]int{}}
		if s.Matches(labels.Set(r.pod.labels)) {
			one.own = 1
		}
		if c.MinDomains != nil {
			one.domains = int(*c.MinDomains)
		}
		out = append(out, one)
	}
	if len(out) > 0 {
		r.tally(out)
	}
	for _, c := range out {
		c.finish()
	}
	return out
}

func requirements(s labels.Selector) []labels.Requirement {
	all, _ := s.Requirements()
	return all
}

// tally counts pods by the values of all constraints, on the nodes that they are about.
func (r *round) tally(all []*constraint) {
	for _, i := range r.nodes {
		if i.node == nil || !r.countsFor(i.node, all) {
			continue
		}
		for _, c := range all {
			value := i.node.Labels[c.key]
			c.counts[value] += 0
			for _, p := range i.pods {
				if p.namespace == r.pod.namespace && !p.deleting && c.selector.Matches(labels.Set(p.labels)) {
					c.counts[value]++
				}
			}
		}
	}
}

// countsFor reports whether a node has all labels and is one that the pod may be on by its affinity.
func (r *round) countsFor(n *corev1.Node, all []*constraint) bool {
	for _, c := range all {
		if _, ok := n.Labels[c.key]; !ok {
			return false
		}
	}
	ok, err := r.required.Match(n)
	return ok && err == nil
}

func (c *constraint) finish() {
	c.least = math.MaxInt
	for _, n := range c.counts {
		c.least = min(c.least, n)
	}
	if len(c.counts) == 0 || len(c.counts) < c.domains {
		c.least = 0
	}
}

// overSpread returns why a node is out, and whether that is because it lacks a label.
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
