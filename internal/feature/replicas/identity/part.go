// Package identity announces the servers to clients by a Lease each (KEP-1965).
package identity

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/part"
)

// Part adds the Lease of this server. hostname returns the name of this machine. address returns the address of the
// server for other servers, "ip:port", given its port; nil means that it is not announced.
func Part(hostname func() (string, error), address func(port int) (string, error)) part.Part {
	return part.Part{Name: "identity lease", Start: func(ctx context.Context, h *part.Host) error {
		host, err := hostname()
		if err != nil {
			return err
		}
		lease := &Lease{Verbs: h.Verbs, Hostname: host}
		if address != nil {
			lease.Peer, _ = address(h.Port) // "" is none
		}
		ctx, cancel := h.Starting(ctx)
		defer cancel()
		if err := lease.Begin(ctx); err != nil {
			h.Log.Warn("the identity lease of this server cannot be created; retried every 10 seconds", "error", err)
		}
		h.Background(func(ctx context.Context) error { lease.Run(ctx); return nil })
		return nil
	}}
}
