package part

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
)

// Extension is what the public package extension brings into a server: kinds of a program's own.
type Extension struct {
	Part Part
	// Behind is set for a server that has these kinds and no others, and stands behind another API server. It is nil
	// for kinds that a whole server has beside those of Kubernetes.
	Behind *Behind
}

// Behind is what an extension API server takes from the server behind which it stands.
type Behind struct {
	// Part follows that server.
	Part Part
	// Authenticator and Authorizer say who asks, and whether they may.
	Authenticator func(h *Host) (*authn.Authenticator, error)
	Authorizer    func(h *Host) (authz.Mode, error) // see Authenticator
	// Hosts are names that the serving certificate is to have besides.
	Hosts []string
	// Lifecycle keeps objects out of namespaces that are not there or being deleted.
	Lifecycle func(h *Host) admit.Plugin
	// Resolve finds where a port of a service listens, "host:port".
	Resolve func(ctx context.Context, namespace, name string, port int32) (string, error)
}

// ServingHosts returns Hosts, none of nil.
func (b *Behind) ServingHosts() []string {
	if b == nil {
		return nil
	}
	return b.Hosts
}
