package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// connector opens connections to kubelets, pods and ports of nodes.
type connector struct {
	settings   Settings
	authorizer authz.Mode
	metrics    *metrics

	// verified and unverified connect to kubelets, the latter without verifying their certificates; direct connects to
	// pods and ports of nodes, without verification. open sets them.
	verified, unverified, direct *http.Transport
}

// open creates the transports. own returns the server's own client certificate for kubelets, or nil if it has none.
func (y *connector) open(dial egress.Dial, own func() *tls.Certificate) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: y.settings.CAFile == ""}
	if y.settings.CAFile != "" {
		authorities, err := os.ReadFile(y.settings.CAFile)
		if err != nil {
			return fmt.Errorf("authorities of kubelets: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return fmt.Errorf("authorities of kubelets: %s contains no PEM certificate", y.settings.CAFile)
		}
	}
	client, err := newClientCertificate(y.settings.CertFile, y.settings.KeyFile, own)
	if err != nil {
		return err
	}
	config.GetClientCertificate = client.get
	dial = y.bounded(dial)
	transport := func(dial egress.Dial, config *tls.Config) *http.Transport {
		t := egress.Transport(dial, config)
		t.TLSHandshakeTimeout = y.settings.Timeout
		return t
	}
	local := y.checked(dial, y.settings.Loopback)
	y.verified = transport(y.answered(local), config)
	config = config.Clone()
	config.InsecureSkipVerify, config.RootCAs = true, nil
	y.unverified = transport(y.answered(local), config)
	y.direct = transport(y.checked(dial, false), &tls.Config{InsecureSkipVerify: true})
	return nil
}

func (y *connector) close() {
	for _, t := range []*http.Transport{y.verified, y.unverified, y.direct} {
		t.CloseIdleConnections()
	}
}

// boundKey marks the context of a request that has its own connection.
type boundKey struct{}

// bounded limits the time to connect. A connection for a single request, which will be hijacked, ends with the request:
// a kubelet that does not answer would otherwise hold it, and its waiters, forever.
func (y *connector) bounded(dial egress.Dial) egress.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		limited, cancel := context.WithTimeout(ctx, y.settings.Timeout)
		defer cancel()
		conn, err := dial(limited, network, address)
		if err == nil && ctx.Value(boundKey{}) != nil {
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
}

// answered limits the time of a kubelet's TLS handshake. The transport does so for its own connections, but nothing
// does so for connections to be hijacked.
func (y *connector) answered(dial egress.Dial) egress.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil || ctx.Value(boundKey{}) == nil {
			return conn, err
		}
		return &unanswered{Conn: conn, late: time.AfterFunc(y.settings.Timeout, func() { conn.Close() })}, nil
	}
}

// unanswered is a connection that late closes unless some data is read before. Reads must be sequential.
type unanswered struct {
	net.Conn
	late *time.Timer // nil once data was read
}

func (c *unanswered) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.late != nil {
		if !c.late.Stop() && n == 0 {
			err = errHandshake
		}
		c.late = nil
	}
	return n, err
}

var errHandshake = errors.New("TLS handshake timeout")

// alone returns the request with the mark that ends its connection with it.
func alone(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), boundKey{}, true))
}

// endpoint is where a kubelet listens.
type endpoint struct {
	host, port string
	features   []string // status.declaredFeatures
}

func (e endpoint) address() string { return net.JoinHostPort(e.host, e.port) }

// node returns the address of a node's kubelet. As in Kubernetes, the error for a missing node is about the request's
// own resource.
func (y *connector) node(ctx context.Context, v *verb.Verbs, c *verb.Call, name string) (*endpoint, error) {
	e, err := current(ctx, v, ref.Nodes.Prefix, "", name)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, apierrors.NewNotFound(c.GroupResource(), name)
	}
	if y.simulates(e) {
		return nil, errSimulated(name)
	}
	node := &corev1.Node{}
	if err := decode(e, node); err != nil {
		return nil, err
	}
	for _, wanted := range y.settings.AddressTypes {
		i := slices.IndexFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool {
			return string(a.Type) == wanted
		})
		if i < 0 {
			continue
		}
		host := node.Status.Addresses[i].Address
		if ip, err := netip.ParseAddr(host); err == nil && !allowed(ip, y.settings.Loopback) {
			return nil, apierrors.NewBadRequest(errAddress.Error())
		}
		port := uint(max(0, node.Status.DaemonEndpoints.KubeletEndpoint.Port))
		if port == 0 {
			port = y.settings.Port
		}
		return &endpoint{
			host: host, port: strconv.FormatUint(uint64(port), 10),
			features: node.Status.DeclaredFeatures,
		}, nil
	}
	return nil, fmt.Errorf("no preferred addresses found; known addresses: %v", node.Status.Addresses)
}

// current returns the current entry of a built-in kind, or nil if there is none.
func current(ctx context.Context, v *verb.Verbs, prefix, namespace, name string) (*watchcache.Entry, error) {
	if _, err := v.View().Fresh(ctx); err != nil {
		return nil, err
	}
	return v.View().Collection(prefix).Snapshot().Get(namespace, name), nil
}

// clientCertificate is the client certificate for kubelets.
type clientCertificate struct {
	certFile, keyFile string
	own               func() *tls.Certificate
}

func newClientCertificate(certFile, keyFile string, own func() *tls.Certificate) (*clientCertificate, error) {
	c := &clientCertificate{certFile, keyFile, own}
	if certFile != "" {
		if _, err := c.get(nil); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// get returns the certificate for a new connection. It rereads the files each time: connections are reused, so this is
// rare.
func (c *clientCertificate) get(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if c.certFile != "" {
		pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
		if err != nil {
			return nil, fmt.Errorf("client certificate for kubelets: %w", err)
		}
		return &pair, nil
	}
	if c.own != nil {
		if own := c.own(); own != nil {
			return own, nil
		}
	}
	return &tls.Certificate{}, nil
}
