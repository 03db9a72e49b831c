package verb

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
)

// fillSystemFields sets the fields of a new object that only the server may set.
func (t *tracker) fillSystemFields(c *Call, obj object.Object) {
	meta := object.Meta(obj)
	meta["uid"] = t.newUID()
	meta["creationTimestamp"] = objectmeta.Stamp(t.now())
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
	if v.err != nil || !t.convert.NeedsWebhook(c.Resource) {
		return v.own, v.err
	}
	return v.own.With(apply.Foreign{
		Served: func(apiVersion string) bool {
			of := c.version(apiVersion)
			return of != nil && of.Served
		},
		Convert: func(objs []object.Object, apiVersion string) ([]object.Object, error) {
			from, to := c.version(object.String(objs[0], "apiVersion")), c.version(apiVersion)
			if from == nil || to == nil {
				return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", apiVersion)
			}
			return t.convert.ConvertAll(ctx, c.Resource, from, to, objs)
		},
	}), nil
}

// version returns the version of the call's resource that an apiVersion names, or nil.
func (c *Call) version(apiVersion string) *catalog.Version {
	for _, v := range c.Resource.Versions {
		if c.Resource.APIVersion(v) == apiVersion {
			return v
		}
	}
	return nil
}

// track records in obj's managedFields that the manager turned old into obj. An object with values that do not match
// its schema cannot be tracked: it continues without managedFields to validation, which reports the problem.
func (t *tracker) track(own *apply.Ownership, old, obj object.Object, manager string) {
	if err := own.Update(old, obj, manager, t.now()); err != nil {
		t.log.Debug("managed fields", "err", err)
		delete(object.Meta(obj), "managedFields")
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
