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

// change is the effect of one write on one object.
type change struct {
	// entry is the stored entry; nil for a new object.
	entry *watchcache.Entry
	// old is the object of entry, and obj its replacement.
	old, obj object.Object
	name     string
	// options are the store options of a write over entry.
	options store.Options
}

// writer writes objects to the store.
type writer struct {
	*Reader
	store       *store.Store
	encoder     *encoder
	allocations *allocations
	admission   *admission
	hooks       map[string]func(old, now object.Object)
	keepers     keeper.Keepers
	// lifecycle is the plugin that keeps new objects out of terminating namespaces; nil if it is disabled.
	lifecycle admit.Mutator
}

// commit stores the object of a change, unless its bytes are already stored. If the object is too large, commit retries
// without its managedFields.
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
		w.updated(c, ch.old, ch.obj) // before waiting: clients with a watch may see the update already
	}
	if err := w.waitVisible(ctx, c, revision); err != nil {
		return nil, err
	}
	res := w.result(ctx, c, ch, stored, revision)
	w.recordChange(ctx, c, ch, ch.obj)
	return res, nil
}

// dryCommit replaces the transaction in a dry run.
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

// swap commits a change of an existing object. If the change empties the finalizers of a deleted object, swap removes
// it.
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

// overwrite replaces the stored object in place, in the storage version, without the side effects of a change.
func (w *writer) overwrite(ctx context.Context, c *Call, e *watchcache.Entry, obj object.Object) error {
	raw, err := w.encoder.persisted(ctx, c, c.Name, codec.EncodeStored(obj, e.Documents()...))
	if err != nil {
		return err
	}
	_, err = w.store.With(store.Options{TTL: c.ttl()}).Update(ctx, c.key(c.Name), raw, e.Revision)
	return err
}

// waitVisible waits until the view shows a write that changes the set of served resources, so that the client's next
// request finds it. Other writes need not wait: reads catch up by themselves.
func (w *writer) waitVisible(ctx context.Context, c *Call, revision int64) error {
	if rules := c.Strategy(); rules == nil || !rules.Serial && !rules.VisibleOnReturn {
		return nil
	}
	return w.view.WaitFor(ctx, revision)
}

// drop deletes the object stored at the revision. The result carries the revision of the deletion.
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

// erase removes the object stored at the revision, together with its allocation records.
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

// revisionOf returns the resourceVersion of a stored object.
func revisionOf(obj object.Object) int64 {
	revision, _ := strconv.ParseInt(object.String(object.Meta(obj), "resourceVersion"), 10, 64)
	return revision
}

// updated calls the hook of the call's target after obj has replaced old.
func (w *writer) updated(c *Call, old, obj object.Object) {
	if len(w.hooks) == 0 || c.Resource.Custom() {
		return
	}
	if hook := w.hooks[c.Target()]; hook != nil {
		hook(old, obj)
	}
}

// finished reports whether nothing delays the removal of a deleted object any longer.
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
