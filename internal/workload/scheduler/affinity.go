package scheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// domain is all nodes that have a value of a label.
type domain struct{ key, value string }

// affinity is how the pods on nodes constrain a pod: required affinity and anti-affinity, in both directions.
type affinity struct {
	near, away []*term
	// together counts, by domain, the pods that match all terms of near; apart counts the pods that match a term of
	// away.
	together map[domain]int
	apart    map[domain]int
	repelled map[domain]bool // domains that the anti-affinity of existing pods excludes
	keys     map[string]bool // the keys of repelled: a node has one domain for each
	own      bool            // the pod matches its own terms of near
}

func newAffinity(m *model, p *podInfo, labelsOf func(string) map[string]string) *affinity {
	a := &affinity{
		near: p.near, away: p.away, together: map[domain]int{}, apart: map[domain]int{}, repelled: map[domain]bool{},
		keys: map[string]bool{},
	}
	if len(a.near)+len(a.away) > 0 {
		for _, other := range m.pods {
			a.count(m.nodes[other.node], other, labelsOf)
		}
	}
	a.own = len(a.near) > 0 && matchesAll(a.near, p, labelsOf)
	for _, other := range m.repelling {
		n := m.nodes[other.node].node
		if n == nil {
			continue
		}
		for _, t := range other.away {
			if value, ok := n.Labels[t.key]; ok && t.matches(p, labelsOf) {
				a.repelled[domain{t.key, value}], a.keys[t.key] = true, true
			}
		}
	}
	return a
}

func matchesAll(terms []*term, p *podInfo, labelsOf func(string) map[string]string) bool {
	return !slices.ContainsFunc(terms, func(t *term) bool { return !t.matches(p, labelsOf) })
}

// count counts a pod on a node.
func (a *affinity) count(i *nodeInfo, p *podInfo, labelsOf func(string) map[string]string) {
	if i == nil || i.node == nil {
		return
	}
	if len(a.near) > 0 && matchesAll(a.near, p, labelsOf) {
		for _, t := range a.near {
			if value, ok := i.node.Labels[t.key]; ok {
				a.together[domain{t.key, value}]++
			}
		}
	}
	for _, t := range a.away {
		if value, ok := i.node.Labels[t.key]; ok && t.matches(p, labelsOf) {
			a.apart[domain{t.key, value}]++
		}
	}
}

// check returns why a node is out, and whether the end of pods on it may mend that.
func (a *affinity) check(n *corev1.Node) (reasons []string, mendable bool) {
	lonely := false
	for _, t := range a.near {
		value, ok := n.Labels[t.key]
		if !ok {
			return []string{"node(s) didn't match pod affinity rules"}, false
		}
		lonely = lonely || a.together[domain{t.key, value}] == 0
	}
	if lonely && (len(a.together) > 0 || !a.own) { // the first pod of a group with mutual affinity may be anywhere
		return []string{"node(s) didn't match pod affinity rules"}, false
	}
	for _, t := range a.away {
		if value, ok := n.Labels[t.key]; ok && a.apart[domain{t.key, value}] > 0 {
			return []string{"node(s) didn't match pod anti-affinity rules"}, true
		}
	}
	for key := range a.keys {
		if value, ok := n.Labels[key]; ok && a.repelled[domain{key, value}] {
			return []string{"node(s) didn't satisfy existing pods anti-affinity rules"}, true
		}
	}
	return nil, false
}
