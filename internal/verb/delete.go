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
	if v.corrupt.Named && corrupt.Asked(&o) {
		return v.deleteUnreadable(ctx, c)
	}
	defer v.sequences.lock(c)()
	for {
		e, err := v.Current(ctx, c)
		if err != nil {
			return nil, err
		}
		v.sequences.refresh(c)
		if err := CheckPreconditions(c, o.Preconditions, e); err != nil {
			return nil, err
		}
		if c.inProcess || c.Metadata {
			c = v.inStoredVersion(c, e) // a cleanup needs only the metadata
		}
		shown, err := v.inVersion(ctx, c, e)
		if err != nil {
			return nil, err
		}
		obj, err := v.Object(c, shown)
		if err != nil {
			return nil, err
		}
		end := ending{deletion.GraceFor(c.Strategy(), obj, &o, v.now()), e}
		if end.UnderWay {
			return &Result{Object: obj, Documents: e.Documents()}, nil
		}
		if err := v.admitDelete(ctx, c, &o, obj); err != nil {
			return nil, err
		}
		res, err := v.remove(ctx, c, obj, o, end)
		if retry(err) {
			continue
		}
		if err == nil {
			res.Documents = e.Documents()
		}
		return res, storeError(err, c, c.Name)
	}
}

// admitDelete runs admission for a deletion, with both the mutating and the validating plugins.
func (v *Verbs) admitDelete(ctx context.Context, c *Call, o *metav1.DeleteOptions, obj object.Object) error {
	if c.admitted {
		return nil
	}
	name := c.Name
	if c.Verb == "deletecollection" {
		name = "" // as in Kubernetes
	}
	a := v.admission.admissionAttributes(ctx, c, admit.Delete, name, o)
	a.Old = obj
	if err := v.admission.mutate(ctx, c, a); err != nil {
		return err
	}
	return v.admission.chain.Validate(ctx, a)
}

// ending is the way an entry is deleted.
type ending struct {
	deletion.Grace
	entry *watchcache.Entry
}

// remove deletes an entry or marks its object.
func (v *Verbs) remove(
	ctx context.Context, c *Call, obj object.Object, o metav1.DeleteOptions, end ending,
) (*Result, error) {
	rules := c.Strategy()
	c.dryRun = isDryRun(o.DryRun)
	held := rules != nil && rules.PrepareDelete != nil && rules.PrepareDelete(obj, v.Env(c))
	had, has := object.Meta(obj)["finalizers"]
	// If the kind's own rules hold the object, the policy applies once they are satisfied; for a namespace it applies
	// at once.
	if !held || c.Resource.IsNamespace() && !end.entry.Deleting {
		deletion.Propagate(c.Resource.Strategy, obj, o)
	}
	last := !held && len(object.Finalizers(obj)) == 0 && end.Period == 0
	switch {
	case end.Graceful:
		end.Mark(obj)
	case last:
		object.SetOrDelete(object.Meta(obj), "finalizers", had, has) // the response shows the object as it was
	default:
		deletion.Mark(obj, v.now())
	}
	mark := change{entry: end.entry, old: obj, obj: obj, name: c.Name, options: c.raise(obj)}
	switch {
	case c.dryRun && last:
		return &Result{Object: obj, Deleted: last}, nil
	case !last:
		return v.writer.swap(ctx, c, mark)
	case !end.Graceful:
		return v.writer.drop(ctx, c, obj, end.entry.Revision)
	}
	// As in Kubernetes there are two writes: watchers first see the deletion mark, then the removal.
	marked, err := v.writer.commit(ctx, c, mark)
	if err != nil {
		return nil, err
	}
	res, err := v.writer.drop(ctx, c, marked.Object, revisionOf(marked.Object))
	if errors.Is(err, store.ErrNotFound) {
		return &Result{Object: marked.Object, Deleted: true}, nil // another client completed the deletion first
	}
	return res, err
}

// WarnDependents warns a client that names no policy about the fate of the dependents, for kinds with a surprising
// default.
func (c *Call) WarnDependents(ctx context.Context, o *metav1.DeleteOptions) {
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
