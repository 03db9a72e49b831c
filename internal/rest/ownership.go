package rest

import (
	"context"
	"fmt"

	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

type ownershipKey struct{ subresource string }

type ownershipOrError struct {
	own *apply.Ownership
	err error
}

// ownership returns what keeps managedFields for the call's version and subresource.
func (s *Server) ownership(ctx context.Context, c *Call) (*apply.Ownership, error) {
	v := c.Version.Derived(ownershipKey{c.Subresource}, func() any {
		own, err := apply.NewOwnership(c.Resource, c.Version, c.Subresource)
		return ownershipOrError{own, err}
	}).(ownershipOrError)
	if v.err != nil || !s.Convert.NeedsWebhook(c.Resource) {
		return v.own, v.err
	}
	return v.own.With(apply.Foreign{
		Served: func(apiVersion string) bool {
			of := c.version(apiVersion)
			return of != nil && of.Served
		},
		Convert: func(objs []Object, apiVersion string) ([]Object, error) {
			from, to := c.version(object.String(objs[0], "apiVersion")), c.version(apiVersion)
			if from == nil || to == nil {
				return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", apiVersion)
			}
			return s.Convert.ConvertAll(ctx, c.Resource, from, to, objs)
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

// track notes in obj's managedFields that the manager has made obj out of old. An object whose values do not have the
// types of its schema cannot be tracked: it goes on without managedFields to validation, which tells the client what
// is wrong.
func (s *Server) track(own *apply.Ownership, old, obj Object, manager string) {
	if err := own.Update(old, obj, manager, s.Now()); err != nil {
		s.Log.Debug("managed fields", "err", err)
		delete(object.Meta(obj), "managedFields")
	}
}

// untrack drops managedFields from an object that is too large for the store, of which they can be more than half: a
// write may go on without them, but not one that is made to own fields. It returns false if that is of no use.
func (c *Call) untrack(obj Object) bool {
	meta := object.Meta(obj)
	if c.applies || meta["managedFields"] == nil {
		return false
	}
	delete(meta, "managedFields")
	return true
}
