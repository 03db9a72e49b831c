package verb

import (
	"context"
	"errors"
	"strconv"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/keeper"
)

// A change is what one write does to one object.
type change struct {
	// entry is what stands in the store; nil for a new object.
	entry *watchcache.Entry
	// old is the object of entry, and obj what takes its place.
	old, obj object.Object
	name     string
	// options are those of a write over entry.
	options store.Options
}

// writer writes objects to the store. Nothing else does.
type writer struct {
	*Reader
	store       *store.Store
	encoder     *encoder
	allocations *allocations
	admission   *admission
	hooks       map[string]func(old, now object.Object)
	keepers     keeper.Keepers
	// lifecycle is the plugin that keeps objects out of namespaces that are being deleted; nil if it is switched off.
	lifecycle admit.Mutator
}

// commit stores the object of a change, unless its bytes are those that are stored already. An object that is too
// large is stored without its managedFields.
func (w *writer) commit(ctx context.Context, c *Call, ch change) (*Result, error) {
	res, err := w.commitWhole(ctx, c, ch)
	if errors.Is(err, store.ErrTooLarge) && c.untrack(ch.obj) {
		return w.commitWhole(ctx, c, ch)
	}
	return res, err
}

func (w *writer) commitWhole(ctx context.Context, c *Call, ch change) (*Result, error) {
	stored, err := w.encoder.toStorage(ctx, c, ch.obj)
	if err != nil {
		return nil, err
	}
	stored.Documents = w.encoder.storing.Keep(c.Resource, stored.JSON, c.documents, ch.entry.Documents())
	if c.dryRun {
		return w.dryCommit(ctx, c, ch, stored)
	}
	if ch.entry != nil && stored.Is(ch.entry.JSON(), ch.entry.Revision, ch.entry.Documents()...) {
		if stale, err := w.encoder.stale(ctx, c, ch.entry); err != nil || !stale {
			res := w.result(ctx, c, ch, stored, ch.entry.Revision)
			w.recordChange(ctx, c, ch, ch.obj)
			return res, err
		}
	}
	var revision int64
	raw, err := w.encoder.persisted(ctx, c, ch.name, stored)
	if err != nil {
		return nil, err
	}
	err = w.allocations.commit(ctx, c, ch.old, ch.obj, func(also []store.Change) (err error) {
		kept := keeper.Change{Namespace: c.Namespace, Name: ch.name, Now: stored.JSON}
		if ch.entry != nil {
			kept.Revision = ch.entry.Revision
		}
		revision, err = w.keepers.Write(ctx, w.view.Collection(c.Resource.Prefix), kept, func() (int64, error) {
			if ch.entry == nil {
				return w.create(ctx, c, ch.name, raw, also)
			}
			o := ch.options
			o.Also = also
			return w.store.With(o).Update(ctx, c.key(ch.name), raw, ch.entry.Revision)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	if ch.entry != nil {
		w.updated(c, ch.old, ch.obj) // at once: clients that watch know of it already
	}
	if err := w.waitVisible(ctx, c, revision); err != nil {
		return nil, err
	}
	res := w.result(ctx, c, ch, stored, revision)
	w.recordChange(ctx, c, ch, ch.obj)
	return res, nil
}

// dryCommit is what a dry run does instead of the transaction.
func (w *writer) dryCommit(ctx context.Context, c *Call, ch change, stored codec.Stored) (*Result, error) {
	if ch.entry == nil {
		if _, err := w.view.Fresh(ctx); err != nil {
			return nil, err
		}
		if w.view.Collection(c.Resource.Prefix).Snapshot().Get(c.Namespace, ch.name) != nil {
			return nil, store.ErrExists
		}
	}
	return w.dryResult(ctx, c, ch.obj, stored)
}

// swap commits a change of an existing object, or the deletion that an emptied list of finalizers completes.
func (w *writer) swap(ctx context.Context, c *Call, ch change) (*Result, error) {
	if !w.finished(c, ch.obj) {
		return w.commit(ctx, c, ch)
	}
	if c.dryRun {
		return &Result{Object: ch.obj, Deleted: true}, nil
	}
	revision, err := w.erase(ctx, c, ch.old, ch.entry.Revision)
	if err != nil {
		return nil, err
	}
	w.recordChange(ctx, c, ch, nil)
	if err := w.waitVisible(ctx, c, revision); err != nil {
		return nil, err
	}
	return &Result{Object: ch.obj, Deleted: true}, nil
}

// overwrite stores an object over its entry as it is, in the storage version, without anything that a change brings
// with it.
func (w *writer) overwrite(ctx context.Context, c *Call, e *watchcache.Entry, obj object.Object) error {
	raw, err := w.encoder.persisted(ctx, c, c.Name, codec.EncodeStored(obj, e.Documents()...))
	if err != nil {
		return err
	}
	_, err = w.store.With(store.Options{TTL: c.ttl()}).Update(ctx, c.key(c.Name), raw, e.Revision)
	return err
}

// waitVisible waits until the view has caught up with a write that changes what the server serves, so that the
// client's next request finds it. Other writes need not wait: reads catch up by themselves.
func (w *writer) waitVisible(ctx context.Context, c *Call, revision int64) error {
	if rules := c.Strategy(); rules == nil || !rules.Serial && !rules.VisibleOnReturn {
		return nil
	}
	return w.view.WaitFor(ctx, revision)
}

// drop deletes the object that was stored at the revision. The result has the revision at which it went.
func (w *writer) drop(ctx context.Context, c *Call, obj object.Object, revision int64) (*Result, error) {
	gone, err := w.erase(ctx, c, obj, revision)
	if err != nil {
		return nil, err
	}
	if c.Audit != nil {
		c.Audit.Changed(obj, nil)
	}
	object.Meta(obj)["resourceVersion"] = strconv.FormatInt(gone, 10)
	return &Result{Object: obj, Deleted: true}, w.waitVisible(ctx, c, gone)
}

// erase removes from the store the object that was stored at the revision, with the records of what it had.
func (w *writer) erase(ctx context.Context, c *Call, obj object.Object, revision int64) (gone int64, err error) {
	err = w.allocations.commit(ctx, c, obj, nil, func(also []store.Change) (err error) {
		kept := keeper.Change{Namespace: c.Namespace, Name: c.Name, Revision: revision}
		gone, err = w.keepers.Write(ctx, w.view.Collection(c.Resource.Prefix), kept, func() (int64, error) {
			return w.store.With(store.Options{Also: also}).Delete(ctx, c.key(c.Name), revision)
		})
		return err
	})
	return gone, err
}

// revisionOf returns the resourceVersion of an object that the store has given one.
func revisionOf(obj object.Object) int64 {
	revision, _ := strconv.ParseInt(object.String(object.Meta(obj), "resourceVersion"), 10, 64)
	return revision
}

// updated calls those who want to know that obj has taken the place of old.
func (w *writer) updated(c *Call, old, obj object.Object) {
	if len(w.hooks) == 0 || c.Resource.Custom() {
		return
	}
	if hook := w.hooks[c.Target()]; hook != nil {
		hook(old, obj)
	}
}

// finished reports whether an object that is being deleted has nothing left to wait for.
func (w *writer) finished(c *Call, obj object.Object) bool {
	meta := object.Meta(obj)
	if object.String(meta, "deletionTimestamp") == "" || len(object.Finalizers(obj)) > 0 {
		return false
	}
	if grace, ok := meta["deletionGracePeriodSeconds"].(int64); ok && grace > 0 {
		return false
	}
	rules := c.Strategy()
	return rules == nil || rules.PrepareDelete == nil || !rules.PrepareDelete(obj, w.Env(c))
}
