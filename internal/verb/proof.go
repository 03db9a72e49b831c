package verb

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/call"
)

// An update of a definition with rules for conversion checks all stored objects (catalog.Strategy.Proof). The check of
// many objects takes long, so it runs before the write takes the lock of its kind. Then the write holds the writes of
// the objects (store.Hold), on all replicas, checks the objects that were written in between, and commits. The hold
// lasts for these few checks. The proof is exact: it covers each object at the revision of the definition.

// proving is a proof in progress.
type proving struct {
	*catalog.Proof
	revision int64 // all objects up to this revision have passed
	objects  int   // at that revision
}

// Bounds of a proof.
const (
	// maxProofs is the number of updates that a write proves, if plugins change it at each attempt.
	maxProofs = 5
	// maxRounds is the number of searches for objects written since the last one, before the hold, and fewChecks the
	// number of objects that a hold may check.
	maxRounds = 5
	fewChecks = 500
	// maxProblems is the number of objects that an error names.
	maxProblems = 3
)

// errUnproven interrupts a write that needs a proof, so that it gives up the lock of its kind.
var errUnproven = errors.New("the objects are not checked yet")

// edit runs a write to an existing object, and proofs that it needs.
func (w *write) edit(ctx context.Context, o metav1.UpdateOptions, edit editor) (*Result, error) {
	for range maxProofs {
		res, err := w.replace(ctx, o, edit)
		if !errors.Is(err, errUnproven) {
			return res, err
		}
		if err := w.prove(ctx); err != nil {
			return nil, err
		}
	}
	return nil, apierrors.NewConflict(w.call.GroupResource(), w.call.Name,
		errors.New("admission changes the rules at each attempt"))
}

// prove checks all objects, until few were written since.
func (w *write) prove(ctx context.Context) error {
	for range maxRounds {
		if _, err := w.View().Fresh(ctx); err != nil {
			return err
		}
		checked, err := w.checkContents(ctx)
		if err != nil || checked < fewChecks {
			return err
		}
	}
	return nil
}

// checkContents checks the objects that were written since the last check, and returns their number.
func (w *write) checkContents(ctx context.Context) (checked int, err error) {
	p := w.proving
	contents := w.Catalog().Snapshot().Resource(p.Contents.Group, p.Contents.Resource)
	if contents == nil {
		return 0, nil
	}
	s := w.View().Collection(contents.Prefix).Snapshot()
	var errs field.ErrorList
	s.Scan("", "", func(e *watchcache.Entry) bool {
		if err = ctx.Err(); err != nil {
			return false
		}
		if e.Revision <= p.revision {
			return true
		}
		checked++
		if problem := checkEntry(p.Proof, e); problem != nil {
			errs = append(errs, field.Invalid(p.Path, field.OmitValueType{}, problem.Error()))
		}
		return len(errs) < maxProblems
	})
	switch {
	case err != nil:
		return checked, err
	case len(errs) > 0:
		return checked, invalid.New(kindOf(w.call, w.obj), w.call.Name, errs)
	}
	p.revision, p.objects = s.Revision, s.Len()
	return checked, nil
}

// checkEntry checks one object. The error names it.
func checkEntry(p *catalog.Proof, e *watchcache.Entry) error {
	if e.Unreadable() != nil {
		return fmt.Errorf("object %s cannot be read from the store, and not be checked: delete it", e.Key())
	}
	obj, err := convert.DecodeStored(e.Peek())
	if err == nil {
		stored := object.String(obj, "apiVersion")
		if err = p.Check(obj); err == nil {
			return nil
		}
		err = fmt.Errorf("stored in %s: %w", stored, err)
	}
	return fmt.Errorf("object %s, %w", e.Key(), err)
}

// proven completes the proof of an update, if it needs one. The caller commits the update and then calls conclude with
// its error.
func (w *write) proven(ctx context.Context) (conclude func(error), err error) {
	none := func(error) {}
	rules := w.call.Strategy()
	if rules == nil || rules.Proof == nil || w.call.Subresource != "" {
		return none, nil
	}
	p, err := rules.Proof(w.obj, w.old)
	switch {
	case err != nil || p == nil:
		return none, err
	case w.proving == nil || w.proving.Key != p.Key:
		w.proving = &proving{Proof: p}
		return none, errUnproven
	}
	release := func() {}
	if !w.dryRun {
		uid := object.String(object.Meta(w.old), "uid")
		w.hold.Name = uid
		if w.hold.Seen, err = w.store.Hold(ctx, uid); err != nil {
			return none, err
		}
		release = func() { w.release(ctx) }
	}
	if _, err = w.View().Fresh(ctx); err == nil {
		_, err = w.checkContents(ctx)
	}
	if err != nil {
		release()
		return none, err
	}
	return func(err error) {
		if err != nil {
			release()
			return
		}
		request.Warn(ctx, w.proving.Report(w.proving.objects))
	}, nil
}

// release ends the hold of a write that has failed, also after the end of its request.
func (w *write) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.HoldTTL)
	defer cancel()
	if err := w.store.Release(ctx, w.hold); err != nil {
		w.log.Error("writes of objects are held until the hold expires", "definition", w.call.Name, "error", err)
	}
	w.hold = store.Barrier{}
}

// behind returns the barrier of the writes of custom objects: a change of their definition holds them.
func behind(c *Call) store.Barrier {
	d := &c.Resource.Definition
	if !c.Resource.Custom() || d.UID == "" {
		return store.Barrier{}
	}
	return store.Barrier{Name: d.UID, Seen: d.Revision}
}

// Bounds of the waits for the end of a hold.
const (
	firstWait = 5 * time.Millisecond
	mostWait  = 200 * time.Millisecond
)

// holds waits for the ends of holds.
type holds struct {
	*Reader
	store *store.Store
}

// await waits for the end of a hold of the call's objects. It returns an error if the write has begun under an earlier
// definition, and must begin anew.
func (h *holds) await(ctx context.Context, c *Call) error {
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		held, err := h.store.Held(ctx, c.Resource.Definition.UID)
		if err != nil {
			return err
		}
		if !held {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
	if _, err := h.View().Fresh(ctx); err != nil {
		return err
	}
	now := h.Catalog().Snapshot().Resource(c.Resource.Group, c.Resource.Plural)
	switch {
	case now == nil || now.Definition.UID != c.Resource.Definition.UID:
		return call.NotServed()
	case now.Definition.Generation != c.Resource.Definition.Generation:
		return apierrors.NewTooManyRequests(fmt.Sprintf("the definition of %s changed during the write: send the "+
			"request again", c.Resource.Qualified()), 1)
	}
	return nil
}

// outlast calls write again after each hold of the call's objects.
func (h *holds) outlast(ctx context.Context, c *Call, write func() (int64, error)) (revision int64, err error) {
	for {
		revision, err = write()
		if behind(c).Name == "" || !errors.Is(err, store.ErrHeld) {
			return revision, err
		}
		if err := h.await(ctx, c); err != nil {
			return 0, err
		}
	}
}
