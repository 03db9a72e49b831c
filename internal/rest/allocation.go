package rest

import (
	"context"
	"errors"
	"fmt"

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
	Assign(obj, old Object, dryRun bool) error
	// Allocations returns the records of what obj has, none for nil.
	Allocations(obj Object) []Allocation
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
	// somebody else's.
	Record Object
}

func (s *Server) allocator(c *Call) Allocator { return s.Allocators[c.Resource.Qualified()] }

// assign completes an object of a kind that has a Allocator; old is nil for a new one.
func (s *Server) assign(ctx context.Context, c *Call, obj, old Object, dryRun bool) error {
	h := s.allocator(c)
	if h == nil || c.Subresource != "" {
		return nil
	}
	if _, err := s.View.Fresh(ctx); err != nil { // what has just been given back is free
		return err
	}
	return h.Assign(obj, old, dryRun)
}

// commitWithAllocations makes a write that turns old into obj, one of which may be nil, with the changes of what the
// object has. write fails with store.ErrTaken if somebody else has it by now.
func (s *Server) commitWithAllocations(
	ctx context.Context, c *Call, old, obj Object, write func(also []store.Change) error,
) error {
	h := s.allocator(c)
	if h == nil {
		return write(nil)
	}
	ahead, also, behind, err := s.difference(ctx, h.Allocations(old), h.Allocations(obj))
	if err != nil {
		return err
	}
	var done []store.Change
	for _, change := range ahead {
		var revision int64
		if revision, err = s.Store.Create(ctx, change.Key, change.Value); err != nil {
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
		if _, err := s.Store.Delete(context.WithoutCancel(ctx), change.Key, change.Revision); err != nil {
			s.Log.Warn("what nobody has any more is not free yet; it will be, a minute later", "key", change.Key,
				"error", err)
		}
	}
	return err
}

// difference returns the changes that turn the records of old into those of obj. A transaction writes at most one
// object of a kind that is served: a watch that broke off between two events of one revision could not go on with the
// second. What is over is written ahead of the transaction, or removed behind it; Stray finds it if the server dies
// between.
func (s *Server) difference(ctx context.Context, old, obj []Allocation) (ahead, also, behind []store.Change,
	err error) {
	had, has := byKey(old), byKey(obj)
	written := false
	for _, h := range obj {
		if _, ok := had[h.key()]; ok {
			continue
		}
		change, err := s.claim(ctx, h)
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
		e := s.recordOf(h)
		if e == nil || !ours(e, h) || len(entryFinalizers(e)) > 0 { // the last goes when Stray finds it
			continue
		}
		change := store.Change{Key: s.prefixOf(h) + "/" + h.Name, Revision: e.Revision, Remove: true}
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
func (s *Server) claim(ctx context.Context, h Allocation) (store.Change, error) {
	if !h.served() {
		record := Object{
			"apiVersion": "v1", "kind": "Holding", "metadata": Object{"name": h.Name}, "spec": h.Record["spec"],
		}
		return store.Change{Key: h.Prefix + "/" + h.Name, Value: codec.AppendJSON(nil, record)}, nil
	}
	call, err := s.Call(h.Resource, "", h.Name, itself())
	if err != nil {
		return store.Change{}, err
	}
	meta := Object{"name": h.Name}
	if labels, ok := h.Record["metadata"].(Object)["labels"].(Object); ok {
		meta["labels"] = labels
	}
	obj, err := s.New(call, Object{"metadata": meta, "spec": h.Record["spec"]})
	if err != nil {
		return store.Change{}, err
	}
	own, err := s.ownership(ctx, call)
	if err != nil {
		return store.Change{}, err
	}
	s.track(own, nil, obj, "kube-apiserver")
	s.fillSystemFields(call, obj)
	stored, err := s.toStorage(ctx, call, obj)
	return store.Change{Key: call.key(h.Name), Value: s.persisted(call, stored)}, err
}

// Repair writes the records that the named object of the call lacks: those of objects that an earlier version has
// stored, and those that somebody has deleted. What somebody else has meanwhile stays theirs.
func (s *Server) Repair(ctx context.Context, c *Call) error {
	h, obj, err := s.held(c)
	if h == nil || obj == nil {
		return err
	}
	for _, holding := range h.Allocations(obj) {
		if s.recordOf(holding) != nil {
			continue
		}
		change, err := s.claim(ctx, holding)
		if err != nil {
			return err
		}
		if _, err := s.Store.Create(ctx, change.Key, change.Value); err != nil && !errors.Is(err, store.ErrExists) {
			return err
		}
	}
	return nil
}

// Leaked tells whether the record that stands under prefix and name is of a thing that the call's object does not have.
func (s *Server) Leaked(c *Call, prefix, name string) (bool, error) {
	h, obj, err := s.held(c)
	if h == nil || err != nil {
		return false, err
	}
	for _, holding := range h.Allocations(obj) {
		if s.prefixOf(holding) == prefix && holding.Name == name {
			return false, nil
		}
	}
	return true, nil
}

// held returns the holder of the call's kind and the named object as the view has it, nil if there is none.
func (s *Server) held(c *Call) (Allocator, Object, error) {
	h := s.allocator(c)
	e := s.View.Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, c.Name)
	if h == nil || e == nil {
		return h, nil, nil
	}
	obj, err := s.fromEntry(c, e)
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

func (s *Server) prefixOf(h Allocation) string {
	if !h.served() {
		return h.Prefix
	}
	if r := s.Catalog.Snapshot().Resource(h.Resource.Group, h.Resource.Resource); r != nil {
		return r.Prefix
	}
	return ""
}

func (s *Server) recordOf(h Allocation) *watchcache.Entry {
	return s.View.Collection(s.prefixOf(h)).Snapshot().Get("", h.Name)
}

// ours tells whether a record is the one of a holding and not of the same thing in other hands.
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

// retry tells whether a write failed because the view was behind, and may be right when it has caught up.
func retry(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrOvertaken) || errors.Is(err, store.ErrTaken)
}
