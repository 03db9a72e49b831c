// Package egress opens the server's connections to other servers.
//
// It is the only package that opens them: callers (webhooks, aggregated APIs, token issuers, etcd) get a Dial for their
// purpose from Egress.Dial, and dial nothing themselves. An EgressSelectorConfiguration (--egress-selector-config-file)
// may select a proxy for a purpose: HTTP CONNECT, or a Konnectivity server over gRPC. Connections to simulated
// and local pods do not leave the process (Divert). The zero Egress dials directly, and costs nothing.
//
// The purposes of callers are as in Kubernetes: docs/konnectivity.md has the table. Source: KEP-1281.
//
// An Egress is safe for concurrent use. It has one connection to a Konnectivity server, made on demand, which carries
// all connections as streams; each has a goroutine that receives, until it is closed.
package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// Purpose is the network that a server is in, as Kubernetes' EgressSelectorConfiguration divides them.
type Purpose string

// The purposes.
const (
	// Cluster is where services and nodes are: aggregated APIs, webhooks that a service names, kubelets.
	Cluster Purpose = "cluster"
	// ControlPlane is the network of the server itself: for webhooks with a URL, authentication and authorization
	// webhooks, and the collectors of audit events and traces.
	ControlPlane Purpose = "controlplane"
	// Etcd is the network of etcd.
	Etcd Purpose = "etcd"
)

// Dial opens a connection to an address, "host:port". When its context ends, the attempt is aborted; an established
// connection stays.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Egress opens connections.
type Egress struct {
	selected   map[Purpose]Dial
	tunnelled  map[Purpose]bool
	diversions []Diversion // for Cluster
	closers    []func() error
}

// Open returns the Egress of a configuration; nil means direct dials. It does not connect itself. Dials through proxies
// are counted in metrics, which may be nil.
func Open(c *Configuration, metrics *prometheus.Registry) (*Egress, error) {
	e := &Egress{}
	if c == nil {
		return e, nil
	}
	counts, tunnels := newMetrics(metrics), newTunnelMetrics(metrics)
	e.selected, e.tunnelled = map[Purpose]Dial{}, map[Purpose]bool{}
	for _, s := range c.EgressSelections {
		name := Purpose(strings.ToLower(s.Name))
		dial, err := e.proxy(&s.Connection, tunnels)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("failed to create dialer for egressSelection %q: %w", name, err), e.Close())
		}
		if dial == nil {
			e.selected[name] = direct()
			continue
		}
		e.selected[name], e.tunnelled[name] = counts.wrap(dial), true
	}
	return e, nil
}

// proxy returns the way through a proxy; nil is directly.
func (e *Egress) proxy(c *apiserver.Connection, tunnels *tunnelMetrics) (proxy, error) {
	switch t := c.Transport; c.ProxyProtocol {
	case apiserver.ProtocolGRPC:
		if t == nil || t.UDS == nil {
			return nil, errors.New("UDS transport must be specified for GRPC")
		}
		tunnel, err := newTunnel(t.UDS.UDSName, tunnels)
		if err != nil {
			return nil, err
		}
		e.closers = append(e.closers, tunnel.close)
		return tunnel, nil
	case apiserver.ProtocolHTTPConnect:
		switch {
		case t != nil && t.UDS != nil:
			return &connectProxy{network: "unix", address: t.UDS.UDSName}, nil
		case t != nil && t.TCP != nil:
			return newConnectProxy(t.TCP)
		}
		//lint:ignore ST1005 kube's text
		return nil, errors.New("Either a TCP or UDS transport must be specified")
	case apiserver.ProtocolDirect:
		return nil, nil
	}
	return nil, fmt.Errorf("unrecognized service connection protocol %q", c.ProxyProtocol)
}

// Dial returns the Dial for a purpose. A purpose without configuration is dialled directly.
func (e *Egress) Dial(p Purpose) Dial {
	dial := e.selected[p]
	if dial == nil {
		dial = direct()
	}
	if p == Cluster {
		return e.diverted(dial)
	}
	return dial
}

// Selected returns the Dial for a purpose with configuration, and nil for others.
func (e *Egress) Selected(p Purpose) Dial { return e.selected[p] }

// Tunnelled reports whether connections for a purpose go through a proxy, which then resolves the dialled names and
// addresses.
func (e *Egress) Tunnelled(p Purpose) bool { return e.tunnelled[p] }

// Close ends the connection to the Konnectivity server, with its streams.
func (e *Egress) Close() error {
	var errs []error
	for _, f := range e.closers {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

func direct() Dial {
	return (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext
}

// Parameters of all connections.
const (
	dialTimeout = 30 * time.Second
	keepAlive   = 30 * time.Second
)

// Transport returns a transport with connections that dial opens, with HTTP/2 if the other end supports it. Idle
// connections are kept for a while, and dead ones are detected.
func Transport(dial Dial, config *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: 10 * time.Second,
		// How long a connection without calls is kept, and how many an HTTP/1 server may have left over from busy
		// times.
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 25,
		ForceAttemptHTTP2:   true,
		// Go's own bound is 10 MB, for each response.
		MaxResponseHeaderBytes: foreign.MaxHeader,
		// Otherwise a dead connection would swallow calls for minutes.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}
