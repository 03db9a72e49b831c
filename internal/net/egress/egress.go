// Package egress opens the connections that the server makes to other servers.
//
// It is the one place that knows how such a server is reached: everything that calls one (webhooks, aggregated APIs,
// issuers of tokens, etcd) asks Egress.Dial for a function for its purpose, and dials nothing by itself. An
// EgressSelectorConfiguration (--egress-selector-config-file) may say that a purpose is reached through a proxy: by
// HTTP CONNECT, or through a Konnectivity server over gRPC. The zero Egress dials directly, and costs nothing.
//
// Who dials for which purpose is as in Kubernetes: docs/konnectivity.md has the table. The rules come from KEP-1281.
//
// An Egress is safe for concurrent use. It has one connection to a Konnectivity server, made when it is needed, which
// carries all connections as streams; each has a goroutine that receives, until it is closed.
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

	"github.com/bowsprit/bowsprit/internal/foreign"
)

// Purpose is the network that a server is in, as Kubernetes' EgressSelectorConfiguration divides them.
type Purpose string

// The purposes.
const (
	// Cluster is where services and nodes are: aggregated APIs, webhooks that a service names, kubelets.
	Cluster Purpose = "cluster"
	// ControlPlane is where the server itself is: webhooks that a URL names, those that are asked who may do what, the
	// collectors of audit events and traces.
	ControlPlane Purpose = "controlplane"
	// Etcd is where etcd is.
	Etcd Purpose = "etcd"
)

// Dial opens a connection to an address, "host:port". It honours its context: when that ends, so does the attempt. A
// connection that is there outlives it.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Egress opens connections.
type Egress struct {
	selected  map[Purpose]Dial
	tunnelled map[Purpose]bool
	closers   []func() error
}

// Open returns what opens connections as a configuration says; nil dials directly. It reaches no server by itself.
// Dials through proxies are counted in metrics, which may be nil.
func Open(c *Configuration, metrics *prometheus.Registry) (*Egress, error) {
	e := &Egress{}
	if c == nil {
		return e, nil
	}
	counts, tunnels := newMetrics(metrics), newTunnelMetrics(metrics)
	e.selected, e.tunnelled = map[Purpose]Dial{}, map[Purpose]bool{}
	for _, s := range c.EgressSelections {
		name := Purpose(strings.ToLower(s.Name))
		way, err := e.proxy(&s.Connection, tunnels)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("failed to create dialer for egressSelection %q: %w", name, err), e.Close())
		}
		if way == nil {
			e.selected[name] = direct()
			continue
		}
		e.selected[name], e.tunnelled[name] = counts.wrap(way), true
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

// Dial returns what opens connections for a purpose. A purpose of which the configuration says nothing is dialled
// directly.
func (e *Egress) Dial(p Purpose) Dial {
	if d := e.selected[p]; d != nil {
		return d
	}
	return direct()
}

// Selected returns what opens connections for a purpose if the configuration says something of it, else nil.
func (e *Egress) Selected(p Purpose) Dial { return e.selected[p] }

// Tunnelled reports whether connections for a purpose go through a proxy, so that the names and addresses that are
// dialled mean what they mean there.
func (e *Egress) Tunnelled(p Purpose) bool { return e.tunnelled[p] }

// Close ends the connection to the Konnectivity server, and what goes over it.
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

// What is true of all connections.
const (
	dialTimeout = 30 * time.Second
	keepAlive   = 30 * time.Second
)

// Transport returns what sends requests over connections that dial opens, with HTTP/2 where the other end has it.
// Connections are kept for a while; one whose other end has vanished is noticed.
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
		// Go's own bound is 10 MB, for each answer.
		MaxResponseHeaderBytes: foreign.MaxHeader,
		// A connection whose other end has vanished would else swallow calls for minutes.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}
