package quota

import (
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// ledger computes the usage of quotas: sums over the objects in the view.
type ledger struct {
	view    *watchcache.View
	catalog *catalog.Catalog
	now     func() time.Time
	// read returns an entry's JSON in the storage version of its resource.
	read func(r *catalog.Resource, e *watchcache.Entry) ([]byte, error)
	// evaluators are the evaluators of kinds that are not only counted.
	evaluators map[catalog.GroupResource]*evaluator

	mu struct {
		sync.Mutex
		tallies map[tallyKey]*tally
	}
}

type tallyKey struct{ prefix, namespace string }

func newLedger(
	view *watchcache.View, c *catalog.Catalog, read func(*catalog.Resource, *watchcache.Entry) ([]byte, error),
) *ledger {
	l := &ledger{view: view, catalog: c, now: time.Now, read: read, evaluators: map[catalog.GroupResource]*evaluator{
		{Resource: "pods"}: pods, {Resource: "services"}: services, {Resource: "persistentvolumeclaims"}: claims,
		{Group: "resource.k8s.io", Resource: "resourceclaims"}: devices{view, time.Now}.evaluator(),
	}}
	l.mu.tallies = map[tallyKey]*tally{}
	return l
}

// tally caches the usage of the objects of one kind and namespace.
type tally struct {
	mu      sync.Mutex
	objects map[string]*counted
	round   int
}

// counted is an object that was measured.
type counted struct {
	entry   *watchcache.Entry
	measure *measure
	round   int // the last round with the object
}

// used returns the usage for names in the scopes of a quota with the given hard limits. It omits names that limit no
// served resource.
func (l *ledger) used(q *corev1.ResourceQuota, hard amounts, names []corev1.ResourceName) amounts {
	sum, all, requirements := amounts{}, amounts{}, requirementsOf(q)
	snapshot := l.catalog.Snapshot()
	for gr, e := range l.evaluators {
		r := snapshot.Resource(gr.Group, gr.Resource)
		if r == nil || len(e.limited(sortedNames(hard))) == 0 || !slices.ContainsFunc(names, e.adds) {
			continue
		}
		for _, name := range e.limited(names) {
			addTo(sum, amounts{name: resource.Quantity{Format: resource.DecimalSI}})
		}
		l.each(r, e, q.Namespace, func(m *measure) {
			if in, err := m.inAll(requirements); err == nil && in {
				addTo(all, masked(m.at(l.now()), names))
			}
		})
	}
	for name, q := range all { // an evaluator's names may also be used by other kinds
		if _, ok := sum[name]; ok {
			addTo(sum, amounts{name: q})
		}
	}
	for _, name := range names {
		r := l.counts(snapshot, string(name))
		if r == nil {
			continue
		}
		n := 0
		if len(requirements) == 0 { // scopes are about other kinds
			n = l.view.Collection(r.Prefix).Snapshot().Count(q.Namespace, "")
		}
		sum[name] = *resource.NewQuantity(int64(n), resource.DecimalSI)
	}
	return sum
}

// counts returns the resource that a name counts; nil if there is none, or if it has its own evaluator.
func (l *ledger) counts(snapshot *catalog.Snapshot, name string) *catalog.Resource {
	of, ok := strings.CutPrefix(name, "count/")
	if !ok {
		for _, alias := range aliases {
			if of = alias; alias == name {
				ok = true
				break
			}
		}
	}
	if !ok {
		return nil
	}
	plural, group, _ := strings.Cut(of, ".")
	if l.evaluators[catalog.GroupResource{Group: group, Resource: plural}] != nil {
		return nil
	}
	r := snapshot.Resource(group, plural)
	if r == nil || !Counted(r) {
		return nil
	}
	return r
}

// each calls f with the usage of each object of a resource in a namespace.
func (l *ledger) each(r *catalog.Resource, e *evaluator, namespace string, f func(*measure)) {
	t := l.tally(tallyKey{r.Prefix, namespace})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.round++
	there := 0
	l.view.Collection(r.Prefix).Snapshot().Scan(namespace, "", func(entry *watchcache.Entry) bool {
		there++
		c := t.objects[entry.Name]
		if c == nil || c.entry != entry || e.changing {
			c = &counted{entry: entry, measure: l.measure(r, e, entry)}
			t.objects[entry.Name] = c
		}
		c.round = t.round
		f(c.measure)
		return true
	})
	if there == len(t.objects) {
		return
	}
	for name, c := range t.objects {
		if c.round != t.round {
			delete(t.objects, name)
		}
	}
}

// measure returns the usage of a stored object. An unreadable object has none: it must not prevent the counting of
// others.
func (l *ledger) measure(r *catalog.Resource, e *evaluator, entry *watchcache.Entry) *measure {
	raw, err := l.read(r, entry)
	if err != nil {
		return &measure{}
	}
	m, err := e.measure(raw)
	if err != nil {
		return &measure{}
	}
	return m
}

func (l *ledger) tally(key tallyKey) *tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.mu.tallies[key]
	if t == nil {
		t = &tally{objects: map[string]*counted{}}
		l.mu.tallies[key] = t
	}
	return t
}

// forget drops the cached usage of a namespace without quotas.
func (l *ledger) forget(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.mu.tallies {
		if key.namespace == namespace {
			delete(l.mu.tallies, key)
		}
	}
}
