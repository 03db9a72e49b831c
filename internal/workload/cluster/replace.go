package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/control"
)

// Replace updates the object that obj was read from to obj, and returns it as stored. It is a Conflict if the object
// has changed since.
func (k Kind[T, P]) Replace(ctx context.Context, c *Cluster, obj P) (P, error) {
	return k.Update(ctx, c, obj, k.overwrite(obj))
}

// ReplaceStatus is Replace for the status.
func (k Kind[T, P]) ReplaceStatus(ctx context.Context, c *Cluster, obj P) (P, error) {
	return k.UpdateStatus(ctx, c, obj, k.overwrite(obj))
}

func (k Kind[T, P]) overwrite(obj P) func(P) error {
	return func(current P) error {
		if current.GetResourceVersion() != obj.GetResourceVersion() {
			return apierrors.NewConflict(schema.GroupResource{Group: k.Group, Resource: k.Resource}, obj.GetName(),
				errChanged)
		}
		fields := current.GetManagedFields()
		*current = *obj
		current.SetManagedFields(fields)
		return nil
	}
}

// errChanged is kube-apiserver's message for a Conflict.
const errChanged = changed("the object has been modified; please apply your changes to the latest version and " +
	"try again")

type changed string

// Error returns the text.
func (c changed) Error() string { return string(c) }

// Revise is Update, but returns a Conflict if the object's spec (its generation) has changed since the object was read.
// Changes of status and metadata do not matter.
func (k Kind[T, P]) Revise(ctx context.Context, c *Cluster, of P, change func(P)) (P, error) {
	return k.Update(ctx, c, of, k.sameGeneration(of, change))
}

// ReviseStatus is Revise for the status.
func (k Kind[T, P]) ReviseStatus(ctx context.Context, c *Cluster, of P, change func(P)) (P, error) {
	return k.UpdateStatus(ctx, c, of, k.sameGeneration(of, change))
}

func (k Kind[T, P]) sameGeneration(of P, change func(P)) func(P) error {
	return func(current P) error {
		if current.GetGeneration() != of.GetGeneration() {
			return apierrors.NewConflict(schema.GroupResource{Group: k.Group, Resource: k.Resource}, of.GetName(),
				errChanged)
		}
		change(current)
		return nil
	}
}

// Soon turns a Conflict of a reconciler into a prompt retry on the current objects.
func Soon(err error) error {
	if apierrors.IsConflict(err) {
		return control.Again(time.Millisecond)
	}
	return err
}
