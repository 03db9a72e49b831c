package peer

import (
	"context"
	"encoding/json"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/feature/replicas/presence"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// announcement is the key that shows this server to others.
type announcement struct {
	host    *part.Host
	key     presence.Key
	address string // "ip:port"
}

// sign writes the key, so that it does not expire.
func (a *announcement) sign(ctx context.Context) error {
	at, err := netip.ParseAddrPort(a.address)
	if err != nil {
		return err
	}
	return a.key.Sign(ctx, object.Object{"apiserverIdentity": a.key.Name}, object.Object{
		"addresses": []any{object.Object{"ip": at.Addr().String()}},
		"ports":     []any{object.Object{"name": "https", "port": int64(at.Port()), "protocol": "TCP"}},
	})
}

// run signs every ten seconds, until ctx ends; then it withdraws.
func (a *announcement) run(ctx context.Context) {
	tick := time.NewTicker(presence.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := a.sign(ctx); err != nil && ctx.Err() == nil {
				a.host.Log.Warn("the address of this server for other servers cannot be renewed", "error", err)
			}
		case <-ctx.Done():
			if _, err := a.key.Withdraw(context.WithoutCancel(ctx)); err != nil {
				a.host.Log.Info("the address of this server cannot be removed; other servers use it for some seconds", "error", err)
			}
			return
		}
	}
}

// addressIn returns the address in a key, or "" if it is invalid.
func addressIn(e *watchcache.Entry) string {
	//lint:ignore SA1019 the format that all servers use
	var endpoints corev1.Endpoints
	if e == nil || json.Unmarshal(e.JSON(), &endpoints) != nil || len(endpoints.Subsets) == 0 {
		return ""
	}
	s := endpoints.Subsets[0]
	if len(s.Addresses) == 0 || len(s.Ports) == 0 || s.Ports[0].Port <= 0 || s.Ports[0].Port > 65535 {
		return ""
	}
	ip, err := netip.ParseAddr(s.Addresses[0].IP)
	if err != nil {
		return ""
	}
	return netip.AddrPortFrom(ip, uint16(s.Ports[0].Port)).String()
}
