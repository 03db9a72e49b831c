package part

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
)

// Extension is the server's side of the public package extension: kinds defined by a program.
type Extension struct {
	Part Part
	// Behind is set for a server with only these kinds, behind another API server. It is nil for kinds in a complete
	// server.
	Behind *Behind
}

// Behind connects an extension API server to the server in front of it.
type Behind struct {
	// Part follows that server.
	Part Part
	// Authenticator and Authorizer authenticate and authorize by that server.
	Authenticator func(h *Host) (*authn.Authenticator, error)
	Authorizer    func(h *Host) (authz.Mode, error) // see Authenticator
	// Hosts are additional names for the serving certificate.
	Hosts []string
	// Lifecycle rejects objects in missing or terminating namespaces.
	Lifecycle func(h *Host) admit.Plugin
	// Resolve returns the address of a service port, "host:port".
	Resolve func(ctx context.Context, namespace, name string, port int32) (string, error)
}

// ServingHosts returns Hosts, none of nil.
func (b *Behind) ServingHosts() []string {
	if b == nil {
		return nil
	}
	return b.Hosts
}
