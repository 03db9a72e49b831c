// Package identity shows clients by a Lease each which servers there are (KEP-1965).
package identity

import (
	"context"
	"fmt"
	"net/netip"
	"os"

	"github.com/bowsprit/bowsprit/internal/part"
)

// Part brings the Lease of this server. advertised returns where others reach it, or why there is no such address.
func Part(advertised func() (netip.Addr, error)) part.Part {
	return part.Part{Name: "identity lease", Start: func(ctx context.Context, h *part.Host) error {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("name of this machine: %w", err)
		}
		lease := &Lease{Verbs: h.Verbs, Hostname: host}
		if ip, err := advertised(); err == nil && h.Port != 0 {
			lease.Peer = netip.AddrPortFrom(ip, uint16(h.Port)).String()
		}
		ctx, cancel := h.Starting(ctx)
		defer cancel()
		if err := lease.Begin(ctx); err != nil {
			h.Log.Warn("there is no lease that shows this server; retried every 10 seconds", "error", err)
		}
		h.Background(func(ctx context.Context) error { lease.Run(ctx); return nil })
		return nil
	}}
}
