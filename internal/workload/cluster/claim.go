package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Claimant is an object that controls others.
type Claimant struct {
	metav1.Object
	// Ref is the owner reference to the claimant.
	Ref metav1.OwnerReference
	// Selects is the selector of the claimant.
	Selects labels.Selector
	// Finalizers are added to adopted objects, and removed from released ones.
	Finalizers []string
	// current reports whether the claimant currently exists and is not being deleted.
	current func(ctx context.Context) bool
}

// Claimant returns obj as the controller of the objects that selector matches.
func (k Kind[T, P]) Claimant(x *Index, obj P, selector labels.Selector) Claimant {
	return Claimant{
		Object: obj, Ref: *metav1.NewControllerRef(obj, k.GroupVersionKind()), Selects: selector,
		current: func(ctx context.Context) bool {
			if x.Fresh(ctx) != nil {
				return false
			}
			now := k.Read(x, obj.GetNamespace(), obj.GetName())
			return now != nil && now.GetUID() == obj.GetUID() && now.GetDeletionTimestamp() == nil
		},
	}
}

// Claim returns the objects that by controls. It adopts objects that by selects and that have no controller, and
// releases objects that by does not select any more. keep further restricts the objects that by may control; nil means
// no restriction.
func (k Kind[T, P]) Claim(
	ctx context.Context, c *Cluster, by Claimant, objects []P, keep func(P) bool,
) (claimed []P, err error) {
	var failed []error
	for _, obj := range objects {
		matches := by.Selects.Matches(labels.Set(obj.GetLabels())) && (keep == nil || keep(obj))
		controller := metav1.GetControllerOfNoCopy(obj)
		switch {
		case controller == nil && matches && by.GetDeletionTimestamp() == nil && obj.GetDeletionTimestamp() == nil:
			adopted, err := k.adopt(ctx, c, by, obj)
			if err != nil {
				failed = append(failed, err)
			} else if adopted != nil {
				claimed = append(claimed, adopted)
			}
		case controller == nil || controller.UID != by.GetUID():
		case matches:
			claimed = append(claimed, obj)
		case by.GetDeletionTimestamp() == nil:
			if err := k.release(ctx, c, by, obj); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return claimed, errors.Join(failed...)
}

// errOwned aborts an adoption because another controller has adopted the object meanwhile.
var errOwned = errors.New("it has a controller by now")

// adopt makes by the controller of an object. It returns nil if the object is gone or has another controller.
func (k Kind[T, P]) adopt(ctx context.Context, c *Cluster, by Claimant, obj P) (P, error) {
	if !by.current(ctx) {
		return nil, fmt.Errorf("can't adopt %s %s/%s: %s %s is gone or being deleted", k.Kind, by.GetNamespace(),
			obj.GetName(), by.Ref.Kind, by.GetName())
	}
	adopted, err := k.Update(ctx, c, obj, func(current P) error {
		if metav1.GetControllerOfNoCopy(current) != nil {
			return errOwned
		}
		current.SetOwnerReferences(append(current.GetOwnerReferences(), by.Ref))
		for _, f := range by.Finalizers {
			if !slices.Contains(current.GetFinalizers(), f) {
				current.SetFinalizers(append(current.GetFinalizers(), f))
			}
		}
		return nil
	})
	if apierrors.IsNotFound(err) || errors.Is(err, errOwned) {
		return nil, nil
	}
	return adopted, err
}

// release removes by from an object's owners.
func (k Kind[T, P]) release(ctx context.Context, c *Cluster, by Claimant, obj P) error {
	_, err := k.Update(ctx, c, obj, func(current P) error {
		current.SetOwnerReferences(slices.DeleteFunc(current.GetOwnerReferences(),
			func(ref metav1.OwnerReference) bool { return ref.UID == by.GetUID() }))
		if len(by.Finalizers) > 0 {
			current.SetFinalizers(slices.DeleteFunc(current.GetFinalizers(),
				func(f string) bool { return slices.Contains(by.Finalizers, f) }))
		}
		return nil
	})
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return err
}
