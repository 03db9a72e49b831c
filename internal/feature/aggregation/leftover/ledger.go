package leftover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

const (
	// Label marks the ConfigMaps of records.
	Label = "bowsprit.dev/leftovers"
	// prefix begins the name of a record; the name of the namespace follows.
	prefix = "leftovers."
	// manager is the field manager of records.
	manager = "namespace-controller"
)

// Name returns the name of the record of a namespace.
func Name(namespace string) string { return prefix + namespace }

// NamespaceOf returns the namespace that a ConfigMap is the record of, "" if it is no record.
func NamespaceOf(namespace, name string) string {
	of, ok := strings.CutPrefix(name, prefix)
	if !ok || namespace != metav1.NamespaceSystem {
		return ""
	}
	return of
}

// Ledger has the records of all namespaces.
type Ledger struct {
	host *part.Host

	mu      sync.RWMutex
	records map[string]Record         // by namespace
	groups  map[string]map[string]int // group -> namespace -> number of debts
}

// NewLedger returns a ledger that follows the view. Call it before the view loads.
func NewLedger(h *part.Host) *Ledger {
	l := &Ledger{host: h, records: map[string]Record{}, groups: map[string]map[string]int{}}
	h.View.Subscribe(func(events []*watchcache.Event) {
		for _, ev := range events {
			if ev = ev.Readable(); ev != nil && ev.Collection.Prefix() == ref.ConfigMaps.Prefix {
				l.observe(ev)
			}
		}
	})
	return l
}

func (l *Ledger) observe(ev *watchcache.Event) {
	namespace := NamespaceOf(ev.Entry.Namespace, ev.Entry.Name)
	if namespace == "" {
		return
	}
	var record Record
	if ev.Type != watchcache.Deleted {
		record = ReadRecord(ev.Entry)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.records[namespace] {
		if l.groups[d.Group][namespace]--; l.groups[d.Group][namespace] == 0 {
			delete(l.groups[d.Group], namespace)
		}
		if len(l.groups[d.Group]) == 0 {
			delete(l.groups, d.Group)
		}
	}
	delete(l.records, namespace)
	if len(record) > 0 {
		l.records[namespace] = record
	}
	for _, d := range record {
		if l.groups[d.Group] == nil {
			l.groups[d.Group] = map[string]int{}
		}
		l.groups[d.Group][namespace]++
	}
}

// ReadRecord returns the record in a ConfigMap, which may be nil.
func ReadRecord(e *watchcache.Entry) Record {
	var decoded struct{ Data map[string]string }
	if e == nil || json.Unmarshal(e.JSON(), &decoded) != nil {
		return nil
	}
	return readRecord(decoded.Data)
}

// Record returns the record of a namespace, nil if it has no debts.
func (l *Ledger) Record(namespace string) Record {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.records[namespace]
}

// Namespaces returns the namespaces with records, in order.
func (l *Ledger) Namespaces() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Sorted(maps.Keys(l.records))
}

// NamespacesOf returns the namespaces with debts of a group, in order.
func (l *Ledger) NamespacesOf(group string) []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Sorted(maps.Keys(l.groups[group]))
}

// Counts returns the number of namespaces with debts of each group.
func (l *Ledger) Counts() map[string]int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	counts := map[string]int{}
	for group, namespaces := range l.groups {
		counts[group] = len(namespaces)
	}
	return counts
}

// Add records debts of a namespace, and returns once requests of this server see them.
func (l *Ledger) Add(ctx context.Context, namespace string, debts []Debt) error {
	l.mu.RLock()
	full := len(l.records) >= MaxRecords && l.records[namespace] == nil
	l.mu.RUnlock()
	if full {
		return fmt.Errorf("%d namespaces have leftovers of servers that do not answer, the most that are recorded: "+
			"delete the ConfigMaps %s* in %s with nothing left to clean", MaxRecords, prefix, metav1.NamespaceSystem)
	}
	err := l.change(ctx, namespace, func(r Record) error {
		for _, d := range debts {
			d.bound()
			if have := r[d.key()]; have != nil {
				merged := *have
				merged.add(d)
				d = merged
				d.bound()
			}
			r[d.key()] = &d
		}
		if len(r) > MaxDebts {
			return fmt.Errorf("%d servers do not answer; leftovers of at most %d are recorded: delete APIServices of "+
				"servers that do not return", len(r), MaxDebts)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record leftovers of namespace %s: %w", namespace, err)
	}
	_, err = l.host.View.Fresh(ctx)
	return err
}

// Change replaces a debt by the result of change. nil deletes it, and an equal one writes nothing. It changes only the
// debt of the namespace that d is about, not one that was added since.
func (l *Ledger) Change(ctx context.Context, namespace string, d, to *Debt) error {
	return l.change(ctx, namespace, func(r Record) error {
		switch have := r[d.key()]; {
		case have == nil || have.NamespaceUID != d.NamespaceUID || have.Since != d.Since:
		case to == nil:
			delete(r, d.key())
		default:
			next := *to
			next.bound()
			r[d.key()] = &next
		}
		return nil
	})
}

// change creates, updates or deletes the record of a namespace.
func (l *Ledger) change(ctx context.Context, namespace string, change func(Record) error) error {
	for {
		err := l.changeOnce(ctx, namespace, change)
		if !errors.Is(err, errRaced) {
			return err
		}
		if _, err := l.host.View.Fresh(ctx); err != nil {
			return err
		}
	}
}

// errRaced is the error for a record that was created or deleted meanwhile.
var errRaced = errors.New("the record has changed")

func (l *Ledger) changeOnce(ctx context.Context, namespace string, change func(Record) error) error {
	call, err := l.host.Verbs.Call(ref.ConfigMaps.GroupResource(), metav1.NamespaceSystem, Name(namespace),
		verb.ServerUser())
	if err != nil {
		return err
	}
	entry := l.host.View.Collection(ref.ConfigMaps.Prefix).Snapshot().Get(call.Namespace, call.Name)
	if entry == nil {
		return l.create(ctx, call, change)
	}
	empty := false
	_, err = l.host.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: manager},
		func(obj object.Object) (object.Object, error) {
			r := readRecord(object.StringMap(obj, "data"))
			if err := change(r); err != nil {
				return nil, err
			}
			empty = len(r) == 0
			obj["data"] = r.object()
			return obj, nil
		})
	switch {
	case apierrors.IsNotFound(err):
		return errRaced
	case err != nil || !empty:
		return err
	}
	return l.deleteEmpty(ctx, call)
}

func (l *Ledger) create(ctx context.Context, call *verb.Call, change func(Record) error) error {
	r := Record{}
	if err := change(r); err != nil || len(r) == 0 {
		return err
	}
	obj, err := l.host.Verbs.New(call, object.Object{
		"metadata": object.Object{
			"name": call.Name, "namespace": call.Namespace, "labels": object.Object{Label: "true"},
		},
		"data": r.object(),
	})
	if err == nil {
		_, err = l.host.Verbs.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: manager})
	}
	if apierrors.IsAlreadyExists(err) {
		return errRaced
	}
	return err
}

// deleteEmpty deletes a record without debts, unless it has changed since.
func (l *Ledger) deleteEmpty(ctx context.Context, call *verb.Call) error {
	if _, err := l.host.View.Fresh(ctx); err != nil {
		return err
	}
	entry := l.host.View.Collection(ref.ConfigMaps.Prefix).Snapshot().Get(call.Namespace, call.Name)
	if entry == nil || l.Record(NamespaceOf(call.Namespace, call.Name)) != nil {
		return nil
	}
	uid, version := types.UID(entry.UID), strconv.FormatInt(entry.Revision, 10)
	_, err := l.host.Verbs.Delete(ctx, call, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// object returns the data of a ConfigMap.
func (r Record) object() object.Object {
	data := object.Object{}
	for key, d := range r {
		text, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			panic(err) // strings only
		}
		data[key] = string(text)
	}
	return data
}
