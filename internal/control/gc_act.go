package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// act carries out a verdict.
func (g *collector) act(ctx context.Context, it item, v verdict, all, blocking []location) error {
	switch {
	case len(v.unlink) > 0:
		return g.relink(ctx, it, func(refs []any) []any { return withoutOwners(refs, v.unlink) })
	case v.remove != "":
		if v.unblock {
			if err := g.relink(ctx, it, withoutBlocking); err != nil {
				return err
			}
			it.entry = it.at.entry()
			if it.entry == nil {
				return nil
			}
			it.ownership = ownershipOf(it.entry)
		}
		return g.remove(ctx, it, v.remove)
	case v.orphan:
		if err := g.orphan(ctx, it.entry.UID, all); err != nil {
			return err
		}
		return g.release(ctx, it, metav1.FinalizerOrphanDependents)
	case v.release:
		return g.release(ctx, it, metav1.FinalizerDeleteDependents)
	case v.hurry:
		for _, p := range blocking {
			if e := p.entry(); e != nil && !waitsForDependents(e) {
				g.need(p.String())
			}
		}
	}
	return nil
}

// remove deletes an object that decide has examined. If it has changed since, but not its owners, the verdict stands.
func (g *collector) remove(ctx context.Context, it item, policy metav1.DeletionPropagation) error {
	uid, revision := types.UID(it.entry.UID), fmt.Sprint(it.entry.Revision)
	o := metav1.DeleteOptions{
		PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &revision},
	}
	if f, remote := it.at.home.(*follower); remote {
		return f.remove(ctx, it, o)
	}
	call, err := g.call(it)
	if err != nil {
		return err
	}
	_, err = g.Verbs.Delete(ctx, call, o)
	if apierrors.IsConflict(err) {
		e := it.at.entry()
		if e == nil || e.UID != it.entry.UID {
			return nil
		}
		if now := ownershipOf(e); bytes.Equal(now.raw, it.ownership.raw) {
			o.Preconditions.ResourceVersion = nil
			_, err = g.Verbs.Delete(ctx, call, o)
		}
	}
	return IgnoreNotFound(err)
}

// orphan removes an owner from its dependents' references.
func (g *collector) orphan(ctx context.Context, uid string, dependents []location) error {
	work := make(chan location)
	errs := make([]error, min(collectors, len(dependents)))
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for p := range work {
				e, res := p.entry(), g.resourceAt(p)
				if e == nil || res == nil {
					continue
				}
				it := item{at: p, resource: res, entry: e}
				if err := g.relink(ctx, it,
					func(refs []any) []any { return withoutOwners(refs, []string{uid}) }); err != nil {
					errs[i] = err
				}
			}
		})
	}
	for _, p := range dependents {
		work <- p
	}
	close(work)
	wg.Wait()
	return errors.Join(errs...)
}

// relink changes the owner references of an object.
func (g *collector) relink(ctx context.Context, it item, change func([]any) []any) error {
	return g.update(ctx, it, func(meta object.Object) {
		refs, _ := meta["ownerReferences"].([]any)
		setList(meta, "ownerReferences", change(refs))
	})
}

// release removes a finalizer from an object.
func (g *collector) release(ctx context.Context, it item, finalizer string) error {
	return g.update(ctx, it, func(meta object.Object) {
		list, _ := meta["finalizers"].([]any)
		setList(meta, "finalizers", slices.DeleteFunc(slices.Clone(list), func(f any) bool { return f == finalizer }))
	})
}

func setList(meta object.Object, key string, list []any) {
	if len(list) == 0 {
		delete(meta, key)
	} else {
		meta[key] = list
	}
}

// update changes an object's metadata, unless another object has replaced it. It needs no conversion webhook.
func (g *collector) update(ctx context.Context, it item, change func(meta object.Object)) error {
	if f, remote := it.at.home.(*follower); remote {
		return f.update(ctx, it, change)
	}
	call, err := g.call(it)
	if err != nil {
		return err
	}
	call = call.MetadataOnly()
	_, err = g.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-controller-manager"},
		func(obj object.Object) (object.Object, error) {
			meta, _ := obj["metadata"].(object.Object)
			if meta == nil || meta["uid"] != it.entry.UID {
				return nil,
					apierrors.NewNotFound(schema.GroupResource{Group: it.resource.Group, Resource: it.resource.Plural},
						it.entry.Name)
			}
			change(meta)
			return obj, nil
		})
	return IgnoreNotFound(err)
}

func (g *collector) call(it item) (*verb.Call, error) {
	gr := catalog.GroupResource{Group: it.resource.Group, Resource: it.resource.Plural}
	return g.Verbs.Call(gr, it.entry.Namespace, it.entry.Name, ControllerUser(garbageCollector))
}
