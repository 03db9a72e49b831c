package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

func (s *Server) serveDelete(w http.ResponseWriter, r *http.Request, c *Call) error {
	if c.Name == "" {
		return c.nameless()
	}
	media, err := c.negotiate(r)
	if err != nil {
		return err
	}
	options, err := deleteOptions(r)
	if err != nil {
		return err
	}
	c.warnDependents(r.Context(), options)
	res, err := s.Delete(r.Context(), c, *options)
	if err != nil {
		return err
	}
	if res.Deleted && !c.Resource.ReturnsDeleted {
		status, err := deletedStatus(c, res)
		if err != nil {
			return err
		}
		return writeDocument(w, r, http.StatusOK, status, media, &metav1.Status{})
	}
	code := http.StatusOK
	//lint:ignore SA1019 older clients send it
	if orphan := options.OrphanDependents; orphan != nil && !*orphan && !res.Deleted {
		code = http.StatusAccepted
	}
	return s.writeObject(w, r, code, c, res, media)
}

// deletedStatus is the answer to a deletion that is complete.
func deletedStatus(c *Call, res *Result) ([]byte, error) {
	return successful(metav1.Status{Details: &metav1.StatusDetails{
		Name: c.Name, Group: c.Resource.Group, Kind: c.Resource.Plural,
		UID: types.UID(object.String(object.Meta(res.Object), "uid")),
	}})
}

// Delete removes the named object, or marks it as being deleted while finalizers, the time that it has to end or the
// kind's rules hold it. Result.Deleted tells which. What happens to the objects that it owns is the garbage
// collector's work; a policy that makes the deletion wait for it becomes a finalizer (propagate).
func (s *Server) Delete(ctx context.Context, c *Call, o metav1.DeleteOptions) (*Result, error) {
	if rules := c.strategy(); rules != nil && rules.Keep != nil && c.Verb != "deletecollection" {
		if why := rules.Keep(c.Name); why != "" {
			return nil, apierrors.NewForbidden(c.groupResource(), c.Name, errors.New(why))
		}
	}
	defer s.lock(c)()
	for {
		e, err := s.current(ctx, c)
		if err != nil {
			return nil, err
		}
		s.refresh(c)
		if err := checkPreconditions(c, o.Preconditions, e); err != nil {
			return nil, err
		}
		if c.inProcess || c.Metadata {
			c = s.inStoredVersion(c, e) // who cleans up needs no more than metadata
		}
		shown, err := s.inVersion(ctx, c, e)
		if err != nil {
			return nil, err
		}
		obj, err := s.fromEntry(c, shown)
		if err != nil {
			return nil, err
		}
		end := c.ending(obj, &o, s.Now())
		if end.underWay {
			return &Result{Object: obj}, nil
		}
		if err := s.admitDelete(ctx, c, &o, obj); err != nil {
			return nil, err
		}
		res, err := s.remove(ctx, c, e, obj, o, end)
		if retry(err) {
			continue
		}
		return res, storeError(err, c, c.Name)
	}
}

// admitDelete asks admission about a deletion: those that change objects too, since it stands between both.
func (s *Server) admitDelete(ctx context.Context, c *Call, o *metav1.DeleteOptions, obj Object) error {
	if c.admitted {
		return nil
	}
	name := c.Name
	if c.Verb == "deletecollection" {
		name = "" // as in Kubernetes
	}
	a := s.admissionAttributes(ctx, c, admit.Delete, name, o, isDryRun(o.DryRun))
	a.Old = obj
	if err := s.mutate(ctx, c, a); err != nil {
		return err
	}
	return s.Admit.Validate(ctx, a)
}

// remove deletes an entry, or marks its object.
func (s *Server) remove(
	ctx context.Context, c *Call, e *watchcache.Entry, obj Object, o metav1.DeleteOptions, end ending,
) (*Result, error) {
	rules, dryRun := c.strategy(), isDryRun(o.DryRun)
	c.dryRun = dryRun
	held := rules != nil && rules.PrepareDelete != nil && rules.PrepareDelete(obj, s.env(c))
	had, has := object.Meta(obj)["finalizers"]
	// A kind with rules of its own for deletion looks at the policy when those are satisfied; a namespace at once.
	if !held || c.Resource.IsNamespace() && !e.Deleting {
		propagate(c, obj, o)
	}
	last := !held && len(object.Finalizers(obj)) == 0 && end.period == 0
	switch {
	case end.graceful:
		end.mark(obj)
	case last:
		object.SetOrDelete(object.Meta(obj), "finalizers", had, has) // the answer shows what went
	default:
		s.markDeleted(obj)
	}
	switch {
	case dryRun && last:
		return &Result{Object: obj, Deleted: last}, nil
	case !last:
		return s.swap(ctx, c, e, obj, obj, c.raise(obj))
	case !end.graceful:
		return s.drop(ctx, c, obj, e.Revision)
	}
	// Two writes, as in Kubernetes: those who watch see that it is being deleted, and then that it is gone.
	marked, err := s.write(ctx, c, e, obj, obj, c.raise(obj))
	if err != nil {
		return nil, err
	}
	res, err := s.drop(ctx, c, marked.Object, revisionOf(marked.Object))
	if errors.Is(err, store.ErrNotFound) {
		return &Result{Object: marked.Object, Deleted: true}, nil // somebody was faster, and wanted the same
	}
	return res, err
}

// drop deletes the object that was stored at the revision. The result has the revision at which it went.
func (s *Server) drop(ctx context.Context, c *Call, obj Object, revision int64) (*Result, error) {
	gone, err := s.erase(ctx, c, obj, revision)
	if err != nil {
		return nil, err
	}
	object.Meta(obj)["resourceVersion"] = strconv.FormatInt(gone, 10)
	return &Result{Object: obj, Deleted: true}, s.waitVisible(ctx, c, gone)
}

// erase removes from the store the object that was stored at the revision, with the records of what it had.
func (s *Server) erase(ctx context.Context, c *Call, obj Object, revision int64) (gone int64, err error) {
	err = s.commitWithAllocations(ctx, c, obj, nil, func(also []store.Change) (err error) {
		gone, err = s.Store.With(store.Options{Also: also}).Delete(ctx, c.key(c.Name), revision)
		return err
	})
	return gone, err
}

// revisionOf returns the resourceVersion of an object that the store has given one.
func revisionOf(obj Object) int64 {
	revision, _ := strconv.ParseInt(object.String(object.Meta(obj), "resourceVersion"), 10, 64)
	return revision
}

func checkPreconditions(c *Call, p *metav1.Preconditions, e *watchcache.Entry) error {
	if p == nil {
		return nil
	}
	// Upstream names the kind where the resource belongs, and clients have seen it so for years.
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
