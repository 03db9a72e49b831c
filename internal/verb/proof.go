package verb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/verb/call"
	"github.com/bowsprit/bowsprit/internal/verb/read"
)

// A write of a definition checks the stored objects (catalog.Strategy.Proof, Protection.Proofs). The check of many
// objects takes long, so it runs before the write takes the lock of its kind. For an exact proof, the write then holds
// the writes of the objects (store.Hold), on all replicas, checks the objects that were written in between, and
// commits. The hold lasts for these few checks. An exact proof covers each object at the revision of the definition.

// maxProofs is the number of updates that a write proves, if plugins change it at each attempt.
const maxProofs = 5

// errUnproven interrupts a write that needs a proof, so that it gives up the lock of its kind.
var errUnproven = errors.New("the objects are not checked yet")

// Protection protects the objects of a definition from writes of the definition. Its functions change no object.
type Protection struct {
	// Proofs returns the checks before a write of obj, which is complete and valid; old is nil for a new object.
	Proofs func(c *Call, obj, old object.Object) ([]*catalog.Proof, field.ErrorList)
	// Delete returns the reason against a deletion of obj, which the client gets.
	Delete func(ctx context.Context, c *Call, obj object.Object) error
}

// protections has the protections by the name of the resource of the definitions.
type protections map[string]Protection

// of returns the protection of the call's resource; it has no functions if there is none.
func (k protections) of(c *Call) Protection {
	if c.Resource.Custom() {
		return Protection{}
	}
	return k[c.Resource.Qualified()]
}

// mayDelete returns the reason against the deletion of an object of the call's resource.
func (k protections) mayDelete(ctx context.Context, c *Call, obj object.Object) error {
	if protection := k.of(c); protection.Delete != nil {
		return protection.Delete(ctx, c, obj)
	}
	return nil
}

// edit runs a write to an existing object, and proofs that it needs.
func (w *write) edit(ctx context.Context, o metav1.UpdateOptions, edit editor) (*Result, error) {
	return w.proving(ctx, func() (*Result, error) { return w.replace(ctx, o, edit) })
}

// proving runs a write, and proofs that it needs.
func (w *write) proving(ctx context.Context, write func() (*Result, error)) (*Result, error) {
	for range maxProofs {
		res, err := write()
		if !errors.Is(err, errUnproven) {
			return res, err
		}
		if err := w.runProofs(ctx); err != nil {
			return nil, err
		}
	}
	return nil, apierrors.NewConflict(w.call.GroupResource(), w.name,
		errors.New("admission changes the definition at each attempt"))
}

// runProofs checks the objects of the proofs.
func (w *write) runProofs(ctx context.Context) error {
	for _, p := range w.proofs {
		errs, err := p.Run(ctx)
		if err := verdict(w, errs, err); err != nil {
			return err
		}
	}
	return nil
}

// verdict returns the result of a proof as one error.
func verdict(w *write, errs field.ErrorList, err error) error {
	if err == nil && len(errs) > 0 {
		err = invalid.New(kindOf(w.call, w.obj), w.name, errs)
	}
	return err
}

// proves reports whether writes of the kind may need proofs.
func proves(w *write) bool {
	rules := w.call.Strategy()
	return rules != nil && rules.Proof != nil || w.protections.of(w.call).Proofs != nil
}

// needed returns the proofs that the write needs.
func (w *write) needed() (all []*catalog.Proof, err error) {
	rules := w.call.Strategy()
	if rules != nil && rules.Proof != nil && w.call.Subresource == "" {
		p, err := rules.Proof(w.obj, w.old)
		if err != nil {
			return nil, err
		}
		if p != nil {
			all = append(all, p)
		}
	}
	if protection := w.protections.of(w.call); protection.Proofs != nil {
		own, errs := protection.Proofs(w.call, w.obj, w.old)
		if len(errs) > 0 {
			return nil, verdict(w, errs, nil)
		}
		all = append(all, own...)
	}
	return all, nil
}

// proven completes the proofs of a write. The caller commits the write and then calls conclude with its error.
func (w *write) proven(ctx context.Context) (conclude func(error), err error) {
	none := func(error) {}
	needed, err := w.needed()
	if err != nil || len(needed) == 0 {
		return none, err
	}
	if !slices.EqualFunc(w.proofs, needed, sameProof) {
		w.proofs = nil
		for _, p := range needed {
			w.proofs = append(w.proofs, w.Survey(p))
		}
		if slices.ContainsFunc(needed, func(p *catalog.Proof) bool { return p.Check != nil }) {
			return none, errUnproven
		}
		if err := w.runProofs(ctx); err != nil {
			return none, err
		}
	}
	release := func() {}
	if w.old != nil && !w.dryRun && slices.ContainsFunc(needed, (*catalog.Proof).Exact) {
		uid := object.String(object.Meta(w.old), "uid")
		w.hold.Name = uid
		if w.hold.Seen, err = w.store.Hold(ctx, uid); err != nil {
			return none, err
		}
		release = func() { w.release(ctx) }
	}
	for _, p := range w.proofs {
		errs, err := p.Finish(ctx)
		if err := verdict(w, errs, err); err != nil {
			release()
			return none, err
		}
	}
	return func(err error) {
		if err != nil {
			release()
			return
		}
		for _, p := range w.proofs {
			request.Warn(ctx, p.Warning())
		}
	}, nil
}

// sameProof reports whether a survey is for a proof.
func sameProof(have *read.Survey, p *catalog.Proof) bool { return have.Key == p.Key }

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
