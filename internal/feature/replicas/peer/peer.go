// Package peer lets servers that share an etcd answer for each other while their releases or configurations differ
// (KEP-4020): it forwards a request for a resource that this server does not serve to a server that does, and
// aggregated discovery lists the resources of all servers.
//
// It is a part. Each server announces its address by a key that expires (package presence). A server that has the
// authorities of the others' certificates reads the discovery of each one once: when its Lease or its key is new.
// Resources of CustomResourceDefinitions and APIServices are the same everywhere, so requests for them are never
// forwarded, nor within five minutes after their deletion here, when the others may not know of it yet.
//
// Requests are routed by an immutable table, which is nil while no other server has additional resources. The goroutine
// of peers.run builds it. Source: pkg/util/peerproxy and pkg/reconcilers of k8s.io/apiserver 0.36.
package peer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/api/discovery"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/identity"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/presence"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Settings configure how servers that share an etcd reach each other.
type Settings struct {
	// Off disables the announcement of addresses.
	Off bool
	// Hostname names this server's Lease; "" means the name of the machine.
	Hostname string
	// IP and Port are the address of this server for others; "" means the result of Advertised, and the port it listens
	// on.
	IP, Port   string
	Advertised func() (netip.Addr, error)
	// AuthorityFile holds the authorities of the other servers' certificates, in PEM. "" disables requests to other
	// servers.
	AuthorityFile string
}

// address returns the address of the server for others, "ip:port", given the port that it listens on.
func (s Settings) address(port int) (string, error) {
	if s.Port != "" {
		port, _ = strconv.Atoi(s.Port)
	}
	if port == 0 {
		return "", errors.New("the server listens on no port")
	}
	ip, err := netip.ParseAddr(s.IP)
	if s.IP == "" {
		ip, err = s.Advertised()
	}
	if err != nil {
		return "", err
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)).String(), nil
}

func (s Settings) host() (string, error) {
	if s.Hostname != "" {
		return s.Hostname, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name of this machine: %w", err)
	}
	return host, nil
}

// Name returns the name of this server's Lease.
func (s Settings) Name() (string, error) {
	host, err := s.host()
	return identity.Name(host), err
}

// Lease brings the Lease of this server.
func (s Settings) Lease() part.Part {
	if s.Off {
		return identity.Part(s.host, nil)
	}
	return identity.Part(s.host, s.address)
}

// Parts adds the announcement of this server and the forwarding of requests.
func Parts(s Settings) []part.Part {
	if s.Off {
		return nil
	}
	return []part.Part{peersPart(s)}
}

func peersPart(s Settings) part.Part {
	p := part.Part{Name: "peers", Start: func(ctx context.Context, h *part.Host) error {
		return announce(ctx, h, s)
	}}
	if s.AuthorityFile == "" {
		return p
	}
	var all *peers
	p.Handlers = func(h *part.Host) part.Handlers {
		all = newPeers(h, s)
		return part.Handlers{}
	}
	p.Elsewhere = func(*part.Host) front.Elsewhere { return all.elsewhere }
	p.Peers = func(*part.Host) *discovery.Peers { return all.published }
	p.Collectors = func(*part.Host) []prometheus.Collector { return all.collectors() }
	p.Start = func(ctx context.Context, h *part.Host) error {
		if err := announce(ctx, h, s); err != nil {
			return err
		}
		if err := all.readAuthorities(); err != nil {
			return fmt.Errorf("--peer-ca-file: %w", err)
		}
		h.Background(all.run)
		return nil
	}
	return p
}

// announce announces this server's address while it runs.
func announce(ctx context.Context, h *part.Host, s Settings) error {
	if !h.Store.Shared() {
		return nil // there is no other
	}
	name, err := s.Name()
	if err != nil {
		return err
	}
	address, err := s.address(h.Port)
	if err != nil {
		h.Log.Info("other servers cannot send requests here: name an address with --peer-advertise-ip", "error", err)
		return nil
	}
	a := &announcement{host: h, address: address, key: presence.Key{
		View: h.View, Store: h.Store, Storing: h.Storing, Prefix: presence.Peers, Name: name,
	}}
	ctx, cancel := h.Starting(ctx)
	defer cancel()
	if err := a.sign(ctx); err != nil {
		h.Log.Warn("the address of this server for other servers cannot be written; retried every 10 seconds", "error", err)
	}
	h.Background(func(ctx context.Context) error { a.run(ctx); return nil })
	return nil
}
