package scheduler

import "k8s.io/apimachinery/pkg/labels"

// tally counts the pods of a namespace that a selector selects, on each node. It is kept while pods come and go, so
// that a thousand pods of one Deployment are not counted a thousand times.
type tally struct {
	selector labels.Selector
	on       map[string]int // by the name of the node
}

// talliesMost is how many tallies of a namespace are kept.
const talliesMost = 64

// tally returns how many pods of a namespace a selector selects on each node; read only, until the model changes. Pods
// that end do not count, nor does anything for a selector that is empty, as in kube-scheduler.
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

// note has the tallies count a pod that comes (1) or goes (-1).
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
