package scheduler

import "k8s.io/apimachinery/pkg/labels"

// tally counts the pods of a namespace that a selector selects, on each node. It is updated as pods come and go, so
// that the thousand pods of a Deployment are not counted a thousand times.
type tally struct {
	selector labels.Selector
	on       map[string]int // by node name
}

// talliesMost is how many tallies of a namespace are kept.
const talliesMost = 64

// tally returns the number of selected pods of a namespace on each node. It is read-only, and valid until the model
// changes. As in kube-scheduler, terminating pods do not count, and an empty selector selects nothing.
func (m *model) tally(namespace string, s labels.Selector) map[string]int {
	if s.Empty() {
		return nil
	}
	name := s.String()
	if t := m.tallies[namespace][name]; t != nil {
		return t.on
	}
	if m.tallies[namespace] == nil || len(m.tallies[namespace]) >= talliesMost {
		m.tallies[namespace] = map[string]*tally{}
	}
	t := &tally{selector: s, on: map[string]int{}}
	m.tallies[namespace][name] = t
	for _, p := range m.pods {
		if p.namespace == namespace {
			t.note(p, 1)
		}
	}
	return t.on
}

// note updates the tallies for an added (1) or removed (-1) pod.
func (m *model) note(p *podInfo, change int) {
	for _, t := range m.tallies[p.namespace] {
		t.note(p, change)
	}
}

func (t *tally) note(p *podInfo, change int) {
	if p.deleting || !t.selector.Matches(labels.Set(p.labels)) {
		return
	}
	if t.on[p.node] += change; t.on[p.node] == 0 {
		delete(t.on, p.node)
	}
}
