package verb

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/corrupt"
	"github.com/bowsprit/bowsprit/internal/verb/deletion"
)

// Delete removes the named object. Finalizers, a grace period or the kind's rules delay the removal; then Delete only
// marks the object, and Result.Deleted is false. The garbage collector handles dependents; a policy that makes the
// deletion wait for them becomes a finalizer (deletion.Propagate).
func (v *Verbs) Delete(ctx context.Context, c *Call, o metav1.DeleteOptions) (*Result, error) {
	if rules := c.Strategy(); rules != nil && rules.Keep != nil && c.Verb != "deletecollection" {
		if why := rules.Keep(c.Name); why != "" {
			return nil, apierrors.NewForbidden(c.GroupResource(), c.Name, errors.New(why))
		}
	}
	if v.UnsafeDeletion() && corrupt.Requested(&o) {
		return v.deleteUnreadable(ctx, c, isDryRun(o.DryRun))
	}
	w := v.begin(c, o.DryRun)
	defer w.sequences.lock(c)()
	for {
		if err := w.find(ctx); err != nil {
			return nil, err
		}
		w.refresh()
		if err := CheckPreconditions(c, o.Preconditions, w.entry); err != nil {
			return nil, err
		}
		if _, err := w.decodeOld(ctx, c.InProcess || c.Metadata); err != nil { // a cleanup needs only the metadata
			return nil, err
		}
		grace := deletion.GraceFor(w.call.Strategy(), w.old, &o, v.Now())
		if grace.UnderWay {
			return &Result{Object: w.old, Documents: w.entry.Documents()}, nil
		}
		if err := w.admitDelete(ctx, &o); err != nil {
			return nil, err
		}
		res, err := w.remove(ctx, o, grace)
		if retry(err) {
			continue
		}
		if err == nil {
			res.Documents = w.entry.Documents()
		}
		return res, storeError(err, c, c.Name)
	}
}

// admitDelete runs admission for a deletion, with both the mutating and the validating plugins.
func (w *write) admitDelete(ctx context.Context, o *metav1.DeleteOptions) error {
	if w.call.Admitted {
		return nil
	}
	name := w.call.Name
	if w.call.Verb == "deletecollection" {
		name = "" // as in Kubernetes
	}
	w.attributes = w.admission.attributes(ctx, w.call, admit.Delete, name, o)
	w.attributes.Old = w.old
	if err := w.mutate(ctx, w.attributes); err != nil {
		return err
	}
	if err := w.admission.chain.Validate(ctx, w.attributes); err != nil {
		return err
	}
	return w.protections.mayDelete(ctx, w.call, w.old)
}

// remove deletes the object, or marks it as deleted. It changes the decoded object.
func (w *write) remove(ctx context.Context, o metav1.DeleteOptions, grace deletion.Grace) (*Result, error) {
	c, obj, rules := w.call, w.old, w.call.Strategy()
	delayed := rules != nil && rules.PrepareDelete != nil && rules.PrepareDelete(obj, w.Env(c))
	had, has := object.Meta(obj)["finalizers"]
	// If the kind's own rules hold the object, the policy applies once they are satisfied; for a namespace it applies
	// at once.
	if !delayed || c.Resource.IsNamespace() && !w.entry.Deleting {
		deletion.Propagate(c.Resource.Strategy, obj, o)
	}
	last := !delayed && len(object.Finalizers(obj)) == 0 && grace.Period == 0
	switch {
	case grace.Graceful:
		grace.Mark(obj)
	case last:
		object.SetOrDelete(object.Meta(obj), "finalizers", had, has) // the response shows the object as it was
	default:
		deletion.Mark(obj, w.Now())
	}
	w.obj, w.raise = obj, contentsFence(c, obj)
	switch {
	case w.dryRun && last:
		return &Result{Object: obj, Deleted: last}, nil
	case !last:
		return w.swap(ctx)
	case !grace.Graceful:
		return w.drop(ctx, obj, w.entry.Revision)
	}
	// As in Kubernetes there are two writes: watchers first see the deletion mark, then the removal.
	marked, err := w.commit(ctx)
	if err != nil {
		return nil, err
	}
	res, err := w.drop(ctx, marked.Object, revisionOf(marked.Object))
	if errors.Is(err, store.ErrNotFound) {
		return &Result{Object: marked.Object, Deleted: true}, nil // another client completed the deletion first
	}
	return res, err
}

// WarnDependents warns a client that names no policy about the fate of the dependents, for kinds with a surprising
// default.
func WarnDependents(ctx context.Context, c *Call, o *metav1.DeleteOptions) {
	//lint:ignore SA1019 older clients send the old option
	silent := o.PropagationPolicy == nil && o.OrphanDependents == nil
	if strategy := c.Strategy(); silent && strategy != nil && strategy.WarnDependents != "" {
		request.Warn(ctx, strategy.WarnDependents)
	}
}

// CheckPreconditions returns an error if the entry does not meet the preconditions of a deletion.
func CheckPreconditions(c *Call, p *metav1.Preconditions, e *watchcache.Entry) error {
	if p == nil {
		return nil
	}
	// Upstream puts the kind into the resource field, and clients rely on it.
	gr := schema.GroupResource{Group: c.Resource.Group, Resource: c.Resource.Kind}
	if p.UID != nil && *p.UID != types.UID(e.UID) {
		return apierrors.NewConflict(gr, c.Name,
			fmt.Errorf(
				"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, e.UID))
	}
	if have := fmt.Sprint(e.Revision); p.ResourceVersion != nil && *p.ResourceVersion != have {
		return apierrors.NewConflict(gr, c.Name,
			fmt.Errorf(
				"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, have))
	}
	return nil
}
