package verb

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
)

// fillSystemFields sets the fields of a new object that only the server may set.
func (t *tracker) fillSystemFields(c *Call, obj object.Object) {
	meta := object.Meta(obj)
	meta["uid"] = t.newUID()
	meta["creationTimestamp"] = objectmeta.Stamp(t.Now())
	if !c.Resource.NoGeneration {
		meta["generation"] = int64(1)
	}
}

// tracker records field managers and system metadata in objects.
type tracker struct {
	*Reader
	newUID func() string
	log    *slog.Logger
}

type ownershipKey struct{ subresource string }

type ownershipOrError struct {
	own *apply.Ownership
	err error
}

// ownership returns the managedFields tracker for the call's version and subresource.
func (t *tracker) ownership(ctx context.Context, c *Call) (*apply.Ownership, error) {
	v := c.Version.Derived(ownershipKey{c.Subresource}, func() any {
		own, err := apply.NewOwnership(c.Resource, c.Version, c.Subresource)
		return ownershipOrError{own, err}
	}).(ownershipOrError)
	if v.err != nil || !t.Converter().Changes(c.Resource) {
		return v.own, v.err
	}
	return v.own.With(apply.Foreign{
		Served: func(apiVersion string) bool {
			of := c.VersionOf(apiVersion)
			return of != nil && of.Served
		},
		Convert: func(objs []object.Object, apiVersion string) ([]object.Object, error) {
			from, to := c.VersionOf(object.String(objs[0], "apiVersion")), c.VersionOf(apiVersion)
			if from == nil || to == nil {
				return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", apiVersion)
			}
			return t.Converter().ConvertAll(ctx, c.Resource, from, to, objs)
		},
	}), nil
}

// track records in obj's managedFields that the manager turned old into obj. An object with values that do not match
// its schema cannot be tracked: it continues with old's managedFields to validation, which reports the problem.
func (t *tracker) track(own *apply.Ownership, old, obj object.Object, manager string) {
	if err := own.Update(old, obj, manager, t.Now()); err != nil {
		t.log.Debug("managed fields", "err", err)
	}
}

// untrack drops managedFields, often more than half of the bytes, from an object that is too large for the store. It
// refuses an apply, since its purpose is to own fields. It returns false if it drops nothing.
func (w *write) untrack() bool {
	meta := object.Meta(w.obj)
	if w.apply || meta["managedFields"] == nil {
		return false
	}
	delete(meta, "managedFields")
	return true
}
