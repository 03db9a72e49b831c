package verb

import (
	"context"
	"errors"
	"strconv"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/primary"
)

// The verbs write objects to the store only by the functions of this file: put, erase and overwrite.

// commit stores the object of the write, unless its bytes are already stored. If the object is too large, commit
// retries without its managedFields.
func (w *write) commit(ctx context.Context) (*Result, error) {
	res, err := w.commitWhole(ctx)
	if errors.Is(err, store.ErrTooLarge) && w.untrack() {
		return w.commitWhole(ctx)
	}
	return res, err
}

func (w *write) commitWhole(ctx context.Context) (*Result, error) {
	stored, err := w.encoder.toStorage(ctx, w.call, w.obj)
	if err != nil {
		return nil, err
	}
	stored.Documents = w.encoder.storing.Keep(w.call.Resource, stored.JSON, w.documents, w.entry.Documents())
	if w.dryRun {
		return w.dryCommit(ctx, stored)
	}
	if w.entry != nil && stored.Is(w.entry.JSON(), w.entry.Revision, w.entry.Documents()...) {
		if stale, err := w.encoder.stale(ctx, w.call, w.entry); err != nil || !stale {
			res := w.result(ctx, stored, w.entry.Revision)
			w.recordChange(ctx, w.obj)
			return res, err
		}
	}
	revision, err := w.put(ctx, stored)
	if err != nil {
		return nil, err
	}
	if w.entry != nil {
		w.updated() // before waiting: clients with a watch may see the update already
	}
	if err := w.waitVisible(ctx, w.call, revision); err != nil {
		return nil, err
	}
	res := w.result(ctx, stored, revision)
	w.recordChange(ctx, w.obj)
	return res, nil
}

// dryCommit replaces the transaction in a dry run.
func (w *write) dryCommit(ctx context.Context, stored codec.Stored) (*Result, error) {
	if w.entry == nil {
		if _, err := w.View().Fresh(ctx); err != nil {
			return nil, err
		}
		if w.View().Collection(w.call.Resource.Prefix).Snapshot().Get(w.call.Namespace, w.name) != nil {
			return nil, store.ErrExists
		}
	}
	return w.dryResult(ctx, stored)
}

// put writes the encoded object and the changes of its records, in its primary store and then in one transaction, and
// returns the revision of the transaction.
func (w *write) put(ctx context.Context, stored codec.Stored) (int64, error) {
	raw, err := w.encoder.persisted(ctx, w.call, w.name, stored)
	if err != nil {
		return 0, err
	}
	records, err := w.allocations.begin(ctx, w.call, w.old, w.obj)
	if err != nil {
		return 0, err
	}
	change := primary.Change{Namespace: w.call.Namespace, Name: w.name, Now: stored.JSON}
	if w.entry != nil {
		change.Revision = w.entry.Revision
	}
	revision, err := w.primaries.Write(ctx, w.View().Collection(w.call.Resource.Prefix), change, func() (int64, error) {
		return w.holds.outlast(ctx, w.call, func() (int64, error) {
			if w.entry == nil {
				return w.putNew(ctx, raw, records.also)
			}
			return w.store.With(w.options(records.also)).Update(ctx, w.call.Key(w.name), raw, w.entry.Revision)
		})
	})
	return revision, records.end(ctx, err)
}

// swap commits a change of an existing object. If the change empties the finalizers of a deleted object, swap removes
// it.
func (w *write) swap(ctx context.Context) (*Result, error) {
	if !w.finished(w.call, w.obj) {
		return w.commit(ctx)
	}
	if w.dryRun {
		return &Result{Object: w.obj, Deleted: true}, nil
	}
	revision, err := w.erase(ctx, w.call, w.old, w.entry.Revision)
	if err != nil {
		return nil, err
	}
	w.recordChange(ctx, nil)
	if err := w.waitVisible(ctx, w.call, revision); err != nil {
		return nil, err
	}
	return &Result{Object: w.obj, Deleted: true}, nil
}

// drop deletes the object stored at the revision. The result carries the revision of the deletion.
func (w *write) drop(ctx context.Context, obj object.Object, revision int64) (*Result, error) {
	gone, err := w.erase(ctx, w.call, obj, revision)
	if err != nil {
		return nil, err
	}
	if w.call.Audit != nil {
		w.call.Audit.Changed(obj, nil)
	}
	object.Meta(obj)["resourceVersion"] = strconv.FormatInt(gone, 10)
	return &Result{Object: obj, Deleted: true}, w.waitVisible(ctx, w.call, gone)
}

// erase removes the object stored at the revision, together with its allocation records. obj is nil if the object is
// unreadable. It returns the revision of the deletion.
func (v *Verbs) erase(ctx context.Context, c *Call, obj object.Object, revision int64) (int64, error) {
	records, err := v.allocations.begin(ctx, c, obj, nil)
	if err != nil {
		return 0, err
	}
	change := primary.Change{Namespace: c.Namespace, Name: c.Name, Revision: revision}
	gone, err := v.primaries.Write(ctx, v.View().Collection(c.Resource.Prefix), change, func() (int64, error) {
		return v.store.With(store.Options{Also: records.also}).Delete(ctx, c.Key(c.Name), revision)
	})
	return gone, records.end(ctx, err)
}

// overwrite stores an encoded object of the storage version in place of entry e, without the checks and the effects of
// a change; e is nil for an object that is not in the store.
func (v *Verbs) overwrite(ctx context.Context, c *Call, e *watchcache.Entry, stored codec.Stored) error {
	raw, err := v.encoder.persisted(ctx, c, c.Name, stored)
	if err != nil {
		return err
	}
	s := v.store.With(store.Options{TTL: ttl(c), Behind: behind(c)})
	_, err = v.holds.outlast(ctx, c, func() (int64, error) {
		if e == nil {
			return s.Create(ctx, c.Key(c.Name), raw)
		}
		return s.Update(ctx, c.Key(c.Name), raw, e.Revision)
	})
	return err
}

// waitVisible waits until the view shows a write that changes the set of served resources, so that the client's next
// request finds it. Other writes need not wait: reads catch up by themselves.
func (v *Verbs) waitVisible(ctx context.Context, c *Call, revision int64) error {
	if rules := c.Strategy(); rules == nil || !rules.Serial && !rules.VisibleOnReturn {
		return nil
	}
	return v.View().WaitFor(ctx, revision)
}

// revisionOf returns the resourceVersion of a stored object.
func revisionOf(obj object.Object) int64 {
	revision, _ := strconv.ParseInt(object.String(object.Meta(obj), "resourceVersion"), 10, 64)
	return revision
}

// updated calls the hook of the call's target after the object has replaced the old one.
func (w *write) updated() {
	if len(w.hooks) == 0 || w.call.Resource.Custom() {
		return
	}
	if hook := w.hooks[w.call.Target()]; hook != nil {
		hook(w.old, w.obj)
	}
}

// finished reports whether nothing delays the removal of a deleted object any longer.
func (v *Verbs) finished(c *Call, obj object.Object) bool {
	meta := object.Meta(obj)
	if object.String(meta, "deletionTimestamp") == "" || len(object.Finalizers(obj)) > 0 {
		return false
	}
	if grace, ok := meta["deletionGracePeriodSeconds"].(int64); ok && grace > 0 {
		return false
	}
	rules := c.Strategy()
	return rules == nil || rules.PrepareDelete == nil || !rules.PrepareDelete(obj, v.Env(c))
}
