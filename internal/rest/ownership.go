package rest

import (
	"github.com/bowsprit/bowsprit/internal/apply"
)

type ownershipKey struct{ subresource string }

type ownershipOrError struct {
	own *apply.Ownership
	err error
}

// ownership returns what keeps managedFields for the call's version and subresource.
func (s *Server) ownership(c *Call) (*apply.Ownership, error) {
	v := c.Version.Derived(ownershipKey{c.Subresource}, func() any {
		own, err := apply.NewOwnership(c.Resource, c.Version, c.Subresource)
		return ownershipOrError{own, err}
	}).(ownershipOrError)
	return v.own, v.err
}

// track notes in obj's managedFields that the manager has made obj out of old. An object whose values do not have the types
// of its schema cannot be tracked: it goes on without managedFields to validation, which tells the client what is wrong.
func (s *Server) track(own *apply.Ownership, old, obj Object, manager string) {
	if err := own.Update(old, obj, manager, s.Now()); err != nil {
		s.Log.Debug("managed fields", "err", err)
		delete(metaOf(obj), "managedFields")
	}
}
