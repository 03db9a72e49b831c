package verb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Allocator assigns the exclusive properties of a kind's objects: the addresses and ports of services.
type Allocator interface {
	// Assign fills in the properties that obj omits and refuses properties that it cannot have. The error goes to the
	// client. old is the object that obj replaces, or nil. Assign reserves nothing.
	Assign(obj, old object.Object, dryRun bool) error
	// Allocations returns the records of obj's properties; none for nil.
	Allocations(obj object.Object) []Allocation
}

// Allocation is the record that one object owns an exclusive property. The transaction that writes or removes the
// object also writes or removes the record, so the record doubles as a lock: a second writer finds it. A failed write
// leaves its properties free, and a crash leaves no record behind.
type Allocation struct {
	// Resource is the cluster-scoped kind of the record if the API serves it, else zero. In that case Prefix is the
	// record's location in the store.
	Resource catalog.GroupResource
	Prefix   string
	Name     string
	// Record has metadata.labels and a spec. The spec names the owning object, so a record with another spec belongs to
	// another object.
	Record object.Object
}

// allocations maintains the records of exclusive properties.
type allocations struct {
	*Reader
	store      *store.Store
	allocators map[string]Allocator
	encoder    *encoder
	tracker    *tracker
	log        *slog.Logger
}

func (l *allocations) allocator(c *Call) Allocator { return l.allocators[c.Resource.Qualified()] }

// assign completes an object of a kind that has an Allocator; old is nil for a new object.
func (l *allocations) assign(ctx context.Context, c *Call, obj, old object.Object, dryRun bool) error {
	h := l.allocator(c)
	if h == nil || c.Subresource != "" {
		return nil
	}
	if _, err := l.View().Fresh(ctx); err != nil { // properties released by the latest writes count as free
		return err
	}
	return h.Assign(obj, old, dryRun)
}

// records are the changes of an object's allocation records in one write: in the object's transaction (also), ahead of
// it and behind it. The zero value is a write without records.
type records struct {
	*allocations
	also []store.Change
	// written are the removals of the records written ahead of the transaction, for a write that fails.
	written []store.Change
	behind  []store.Change
}

// begin writes the records that precede the transaction that turns old into obj; either may be nil. The caller runs the
// transaction with the changes in also, and then calls end. The error is store.ErrTaken if another object has taken a
// property in the meantime.
func (l *allocations) begin(ctx context.Context, c *Call, old, obj object.Object) (records, error) {
	h := l.allocator(c)
	if h == nil {
		return records{}, nil
	}
	ahead, also, behind, err := l.difference(ctx, h.Allocations(old), h.Allocations(obj))
	if err != nil {
		return records{}, err
	}
	r := records{allocations: l, also: also, behind: behind}
	for _, change := range ahead {
		revision, err := l.store.Create(ctx, change.Key, change.Value)
		if err != nil {
			if errors.Is(err, store.ErrExists) {
				err = fmt.Errorf("%s: %w", change.Key, store.ErrTaken)
			}
			return records{}, r.end(ctx, err)
		}
		r.written = append(r.written, store.Change{Key: change.Key, Revision: revision})
	}
	return r, nil
}

// end removes the records that the write has freed, or, if the transaction failed with err, the records written ahead
// of it. It returns err.
func (r records) end(ctx context.Context, err error) error {
	removals := r.behind
	switch {
	case errors.Is(err, store.ErrUncertain):
		return err // the object may have been written, with its records
	case err != nil:
		removals = r.written
	}
	for _, change := range removals {
		if _, err := r.store.Delete(context.WithoutCancel(ctx), change.Key, change.Revision); err != nil {
			r.log.Warn("release of an address or port failed; retried by the repair loop", "record", change.Key,
				"error", err)
		}
	}
	return err
}

// difference returns the changes that turn the records of old into the records of obj. A transaction writes at most one
// object of a served kind: a watch interrupted between two events of one revision could not resume at the second.
// Further changes come ahead of the transaction (writes) or behind it (removals). If the server dies in between, the
// repair loop cleans up.
func (l *allocations) difference(ctx context.Context, old, obj []Allocation) (ahead, also, behind []store.Change,
	err error) {
	had, has := byKey(old), byKey(obj)
	written := false
	for _, h := range obj {
		if _, ok := had[h.key()]; ok {
			continue
		}
		change, err := l.claim(ctx, h)
		switch {
		case err != nil:
			return nil, nil, nil, err
		case h.served() && written:
			ahead = append(ahead, change)
		default:
			also = append(also, change)
			written = written || h.served()
		}
	}
	for _, h := range old {
		if _, ok := has[h.key()]; ok {
			continue
		}
		e := l.recordOf(h)
		if e == nil || !ours(e, h) || len(entryFinalizers(e)) > 0 { // the repair loop removes a record with finalizers
			continue
		}
		change := store.Change{Key: l.prefixOf(h) + "/" + h.Name, Revision: e.Revision, Remove: true}
		if h.served() && written {
			behind = append(behind, change)
			continue
		}
		also = append(also, change)
		written = written || h.served()
	}
	return ahead, also, behind, nil
}

// claim returns the change that writes a record.
func (l *allocations) claim(ctx context.Context, h Allocation) (store.Change, error) {
	if !h.served() {
		record := object.Object{
			"apiVersion": "v1", "kind": "Holding", "metadata": object.Object{"name": h.Name}, "spec": h.Record["spec"],
		}
		return store.Change{Key: h.Prefix + "/" + h.Name, Value: codec.AppendJSON(nil, record)}, nil
	}
	call, err := l.Call(h.Resource, "", h.Name, ServerUser())
	if err != nil {
		return store.Change{}, err
	}
	meta := object.Object{"name": h.Name}
	if labels, ok := h.Record["metadata"].(object.Object)["labels"].(object.Object); ok {
		meta["labels"] = labels
	}
	obj, err := newObject(call, object.Object{"metadata": meta, "spec": h.Record["spec"]})
	if err != nil {
		return store.Change{}, err
	}
	own, err := l.tracker.ownership(ctx, call)
	if err != nil {
		return store.Change{}, err
	}
	l.tracker.track(own, nil, obj, "kube-apiserver")
	l.tracker.fillSystemFields(call, obj)
	stored, err := l.encoder.toStorage(ctx, call, obj)
	if err != nil {
		return store.Change{}, err
	}
	raw, err := l.encoder.persisted(ctx, call, h.Name, stored)
	return store.Change{Key: call.Key(h.Name), Value: raw}, err
}

// repair writes the missing records of the named object: an earlier version stored the object without them, or a client
// deleted them. Properties that another object has taken stay with that object.
func (l *allocations) repair(ctx context.Context, c *Call) error {
	h, obj, err := l.current(c)
	if h == nil || obj == nil {
		return err
	}
	for _, holding := range h.Allocations(obj) {
		if l.recordOf(holding) != nil {
			continue
		}
		change, err := l.claim(ctx, holding)
		if err != nil {
			return err
		}
		if _, err := l.store.Create(ctx, change.Key, change.Value); err != nil && !errors.Is(err, store.ErrExists) {
			return err
		}
	}
	return nil
}

// leaked reports whether the record under prefix and name is for a property that the call's object does not have.
func (l *allocations) leaked(c *Call, prefix, name string) (bool, error) {
	h, obj, err := l.current(c)
	if h == nil || err != nil {
		return false, err
	}
	for _, holding := range h.Allocations(obj) {
		if l.prefixOf(holding) == prefix && holding.Name == name {
			return false, nil
		}
	}
	return true, nil
}

// current returns the allocator of the call's kind and the named object from the view; both may be nil.
func (l *allocations) current(c *Call) (Allocator, object.Object, error) {
	h := l.allocator(c)
	e := l.View().Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, c.Name)
	if h == nil || e == nil {
		return h, nil, nil
	}
	obj, err := l.Object(c, e)
	return h, obj, err
}

func (h Allocation) served() bool { return h.Resource.Resource != "" }

func (h Allocation) key() string {
	return h.Resource.Group + "/" + h.Resource.Resource + h.Prefix + "/" + h.Name
}

func byKey(list []Allocation) map[string]Allocation {
	m := make(map[string]Allocation, len(list))
	for _, h := range list {
		m[h.key()] = h
	}
	return m
}

func (l *allocations) prefixOf(h Allocation) string {
	if !h.served() {
		return h.Prefix
	}
	if r := l.Catalog().Snapshot().Resource(h.Resource.Group, h.Resource.Resource); r != nil {
		return r.Prefix
	}
	return ""
}

func (l *allocations) recordOf(h Allocation) *watchcache.Entry {
	return l.View().Collection(l.prefixOf(h)).Snapshot().Get("", h.Name)
}

// ours reports whether a record belongs to the allocation, not to another object with the same property.
func ours(e *watchcache.Entry, h Allocation) bool {
	record, err := convert.DecodeStored(e.JSON())
	return err == nil && codec.Equal(record["spec"], h.Record["spec"])
}

func entryFinalizers(e *watchcache.Entry) []string {
	record, err := convert.DecodeStored(e.JSON())
	if err != nil {
		return nil
	}
	return object.Finalizers(record)
}

// retry reports whether a write failed because the view was behind, and may succeed once the view has caught up.
func retry(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrOvertaken) || errors.Is(err, store.ErrTaken)
}
