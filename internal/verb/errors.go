package verb

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// optimisticLock is the message for a write with an outdated resourceVersion.
const optimisticLock = "the object has been modified; please apply your changes to the latest version and try again"

func conflict(c *Call, name string) error {
	return apierrors.NewConflict(c.GroupResource(), name, errors.New(optimisticLock))
}

// terminating refuses a new object, with its name or "", because the definition of its kind is being deleted. In
// Kubernetes this is the admission of such kinds, so the check precedes all plugins.
func terminating(c *Call, name string) error {
	return apierrors.NewForbidden(c.GroupResource(), name,
		errors.New("create not allowed while custom resource definition is terminating"))
}

// storeError translates an error of the store into the error for the client.
func storeError(err error, c *Call, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrExists):
		return apierrors.NewAlreadyExists(c.GroupResource(), name)
	case errors.Is(err, store.ErrNotFound):
		return apierrors.NewNotFound(c.GroupResource(), name)
	case errors.Is(err, store.ErrHeld):
		return apierrors.NewConflict(c.GroupResource(), name,
			errors.New("another change of the definition came first, or its check of stored objects took too long: try again"))
	case errors.Is(err, store.ErrNoSpace):
		return errors.New("etcdserver: mvcc: database space exceeded") // kube's text
	case errors.Is(err, store.ErrTooLarge):
		return errors.New("etcdserver: request is too large") // kube's text
	case errors.Is(err, context.DeadlineExceeded):
		// No Retry-After: client-go would repeat a write that may have happened.
		return apierrors.NewTimeoutError("the store did not answer in time; the write may or may not have happened", 0)
	default:
		return err
	}
}

// kindOf returns the kind that errors about obj name, taken from obj itself.
func kindOf(c *Call, obj object.Object) schema.GroupKind {
	apiVersion := object.String(obj, "apiVersion")
	if c.Resource.Secondary {
		apiVersion = c.Resource.APIVersion(c.Resource.Storage) // the error comes from the rules of that version
	}
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return schema.GroupKind{Group: gv.Group, Kind: object.String(obj, "kind")}
}
