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
