package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/store"
	"github.com/bowsprit/bowsprit/internal/watchcache"
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
	res, err := s.Delete(r.Context(), c, *options)
	if err != nil {
		return err
	}
	if res.Deleted {
		status, err := deletedStatus(c, res)
		if err != nil {
			return err
		}
		return writeDocument(w, r, http.StatusOK, status, media, &metav1.Status{})
	}
	code := http.StatusOK
	//lint:ignore SA1019 older clients send it
	if orphan := options.OrphanDependents; orphan != nil && !*orphan {
		code = http.StatusAccepted
	}
	return s.writeObject(w, r, code, c, res, media)
}

// deletedStatus is the answer to a deletion that is complete.
func deletedStatus(c *Call, res *Result) ([]byte, error) {
	return successful(metav1.Status{Details: &metav1.StatusDetails{
		Name: c.Name, Group: c.Resource.Group, Kind: c.Resource.Plural, UID: types.UID(str(metaOf(res.Object), "uid")),
	}})
}

// Delete removes the named object, or marks it as being deleted while finalizers or the kind's rules hold it.
// Result.Deleted tells which. What happens to the objects that it owns is the garbage collector's work; a policy that
// makes the deletion wait for it becomes a finalizer (propagate).
func (s *Server) Delete(ctx context.Context, c *Call, o metav1.DeleteOptions) (*Result, error) {
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
		if err := s.admitDelete(ctx, c, &o, obj); err != nil {
			return nil, err
		}
		res, err := s.remove(ctx, c, e, obj, o)
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrOvertaken) {
			continue
		}
		return res, storeError(err, c, c.Name)
	}
}

// admitDelete asks admission about a deletion: those that change objects too, since it stands between both.
func (s *Server) admitDelete(ctx context.Context, c *Call, o *metav1.DeleteOptions, obj Object) error {
	name := c.Name
	if c.Verb == "deletecollection" {
		name = "" // as in Kubernetes
	}
	a := s.asked(ctx, c, admit.Delete, name, o, isDryRun(o.DryRun))
	a.Old = obj
	if err := s.mutate(ctx, c, a); err != nil {
		return err
	}
	return s.Admit.Validate(ctx, a)
}

// remove deletes an entry, or marks its object.
func (s *Server) remove(ctx context.Context, c *Call, e *watchcache.Entry, obj Object, o metav1.DeleteOptions) (*Result, error) {
	rules, dryRun := c.rules(), isDryRun(o.DryRun)
	held := rules != nil && rules.PrepareDelete != nil && rules.PrepareDelete(obj, s.env(c))
	// A kind with rules of its own for deletion looks at the policy when those are satisfied; a namespace at once.
	if !held || c.Resource.IsNamespace() && !e.Deleting {
		propagate(c, obj, o)
	}
	if !held && len(finalizers(obj)) == 0 {
		if dryRun {
			return &Result{Object: obj, Deleted: true}, nil
		}
		revision, err := s.Store.Delete(ctx, c.key(c.Name), e.Revision)
		if err != nil {
			return nil, err
		}
		return &Result{Object: obj, Deleted: true}, s.shown(ctx, c, revision)
	}
	s.mark(obj)
	if dryRun {
		return &Result{Object: obj}, nil
	}
	return s.swap(ctx, c, e, obj, c.raise(obj))
}

// mark sets what tells everyone that an object is being deleted; the first deletion counts.
func (s *Server) mark(obj Object) {
	meta := metaOf(obj)
	if str(meta, "deletionTimestamp") != "" {
		return
	}
	meta["deletionTimestamp"] = stamp(s.Now())
	meta["deletionGracePeriodSeconds"] = int64(0)
	if generation, ok := meta["generation"].(int64); ok && generation > 0 {
		meta["generation"] = generation + 1
	}
}

func checkPreconditions(c *Call, p *metav1.Preconditions, e *watchcache.Entry) error {
	if p == nil {
		return nil
	}
	// Upstream names the kind where the resource belongs, and clients have seen it so for years.
	gr := schema.GroupResource{Group: c.Resource.Group, Resource: c.Resource.Kind}
	if p.UID != nil && *p.UID != types.UID(e.UID) {
		return apierrors.NewConflict(gr, c.Name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, e.UID))
	}
	if have := fmt.Sprint(e.Revision); p.ResourceVersion != nil && *p.ResourceVersion != have {
		return apierrors.NewConflict(gr, c.Name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, have))
	}
	return nil
}
