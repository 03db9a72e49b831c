package verb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Allocator knows what objects of a kind have that no other object may have: the addresses and ports of services.
type Allocator interface {
	// Assign gives obj what it should have and does not name, and refuses what it names and cannot have; the error is
	// what the client is told. old is the object that obj takes the place of, nil for a new one. It reserves nothing.
	Assign(obj, old object.Object, dryRun bool) error
	// Allocations returns the records of what obj has, none for nil.
	Allocations(obj object.Object) []Allocation
}

// Allocation is the record of a thing that one object has. It stands in the store as long as the object has the thing,
// is written and removed in the transaction that writes and removes the object, and so is the lock as well: who comes
// second finds it there. What a failed write would have had is free, and a crash leaves nothing behind.
type Allocation struct {
	// Resource is the cluster-scoped kind of which the record is an object that is served, zero if it is not served.
	// Then Prefix is where it stands in the store.
	Resource catalog.GroupResource
	Prefix   string
	Name     string
	// Record has metadata.labels and a spec, which names the object that has the thing: a record with another spec is
	// another object's.
	Record object.Object
}

// allocations keeps the records of what objects have.
type allocations struct {
	*Reader
	store      *store.Store
	allocators map[string]Allocator
	encoder    *encoder
	tracker    *tracker
	log        *slog.Logger
}

func (l *allocations) allocator(c *Call) Allocator { return l.allocators[c.Resource.Qualified()] }

// assign completes an object of a kind that has an Allocator; old is nil for a new one.
func (l *allocations) assign(ctx context.Context, c *Call, obj, old object.Object, dryRun bool) error {
	h := l.allocator(c)
	if h == nil || c.Subresource != "" {
		return nil
	}
	if _, err := l.view.Fresh(ctx); err != nil { // what has just been given back is free
		return err
	}
	return h.Assign(obj, old, dryRun)
}

// commit makes a write that turns old into obj, one of which may be nil, with the changes of what the object has. write
// fails with store.ErrTaken if another object has it by now.
func (l *allocations) commit(
	ctx context.Context, c *Call, old, obj object.Object, write func(also []store.Change) error,
) error {
	h := l.allocator(c)
	if h == nil {
		return write(nil)
	}
	ahead, also, behind, err := l.difference(ctx, h.Allocations(old), h.Allocations(obj))
	if err != nil {
		return err
	}
	var done []store.Change
	for _, change := range ahead {
		var revision int64
		if revision, err = l.store.Create(ctx, change.Key, change.Value); err != nil {
			if errors.Is(err, store.ErrExists) {
				err = fmt.Errorf("%s: %w", change.Key, store.ErrTaken)
			}
			break
		}
		done = append(done, store.Change{Key: change.Key, Revision: revision})
	}
	if err == nil {
		if err = write(also); err == nil {
			done = behind
		}
	}
	if errors.Is(err, store.ErrUncertain) {
		return err // the object may have it
	}
	for _, change := range done {
		if _, err := l.store.Delete(context.WithoutCancel(ctx), change.Key, change.Revision); err != nil {
			l.log.Warn("release of an address or port failed; retried by the repair loop", "record", change.Key,
				"error", err)
		}
	}
	return err
}

// difference returns the changes that turn the records of old into those of obj. A transaction writes at most one
// object of a kind that is served: a watch that broke off between two events of one revision could not go on with the
// second. What is over is written ahead of the transaction, or removed behind it; the repair loop finds it if the
// server dies between.
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
		if e == nil || !ours(e, h) || len(entryFinalizers(e)) > 0 { // the last goes when the repair loop finds it
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
	return store.Change{Key: call.key(h.Name), Value: raw}, err
}

// repair writes the records that the named object of the call lacks: those of objects that an earlier version has
// stored, and those that a client has deleted. What another object has taken meanwhile stays with that object.
func (l *allocations) repair(ctx context.Context, c *Call) error {
	h, obj, err := l.held(c)
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

// leaked reports whether the record that stands under prefix and name is of a thing that the call's object does not
// have.
func (l *allocations) leaked(c *Call, prefix, name string) (bool, error) {
	h, obj, err := l.held(c)
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

// held returns the holder of the call's kind and the named object as the view has it, nil if there is none.
func (l *allocations) held(c *Call) (Allocator, object.Object, error) {
	h := l.allocator(c)
	e := l.view.Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, c.Name)
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
	if r := l.catalog.Snapshot().Resource(h.Resource.Group, h.Resource.Resource); r != nil {
		return r.Prefix
	}
	return ""
}

func (l *allocations) recordOf(h Allocation) *watchcache.Entry {
	return l.view.Collection(l.prefixOf(h)).Snapshot().Get("", h.Name)
}

// ours reports whether a record is the one of an allocation, and not of another object that has the same thing.
func ours(e *watchcache.Entry, h Allocation) bool {
	record, err := decodeStored(e.JSON())
	return err == nil && codec.Equal(record["spec"], h.Record["spec"])
}

func entryFinalizers(e *watchcache.Entry) []string {
	record, err := decodeStored(e.JSON())
	if err != nil {
		return nil
	}
	return object.Finalizers(record)
}

// retry reports whether a write failed because the view was behind, and may be right when it has caught up.
func retry(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrOvertaken) || errors.Is(err, store.ErrTaken)
}
