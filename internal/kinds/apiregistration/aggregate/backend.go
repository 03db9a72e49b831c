package aggregate

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/bowsprit/bowsprit/internal/net/egress"
)

// backend is a service as APIServices describe it: what its certificate must say. APIServices that say the same share
// its connections.
type backend struct {
	config      *tls.Config
	dial        egress.Dial
	certificate func() *tls.Certificate
	// broken is why nothing can be sent.
	broken error
	// requests counts those that were sent for clients.
	requests atomic.Int64
	// seen is requests when the service was last checked.
	seen atomic.Int64

	current atomic.Pointer[connections]
	mu      sync.Mutex // held by who replaces current
}

// connections are those on which this server shows one certificate.
type connections struct {
	shown  *tls.Certificate
	shared *http.Transport
	// single speaks HTTP/1 only, for requests that take their connection over.
	single *http.Transport
}

func (c *connections) closeIdle() {
	c.shared.CloseIdleConnections()
	c.single.CloseIdleConnections()
}

// backendKey is what connections have in common.
type backendKey struct {
	namespace, name string
	authorities     [sha256.Size]byte
	insecure        bool
}

func keyOf(spec *apiregistrationv1.APIServiceSpec) backendKey {
	return backendKey{
		namespace: spec.Service.Namespace, name: spec.Service.Name, authorities: sha256.Sum256(spec.CABundle),
		insecure: spec.InsecureSkipTLSVerify,
	}
}

// newBackend returns what reaches a service over connections that dial opens. certificate returns what the server shows
// there, nil for nothing.
func newBackend(
	spec *apiregistrationv1.APIServiceSpec, dial egress.Dial, certificate func() *tls.Certificate,
) *backend {
	b := &backend{certificate: certificate, config: &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: spec.Service.Name + "." + spec.Service.Namespace + ".svc",
		InsecureSkipVerify: spec.InsecureSkipTLSVerify,
	}}
	b.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, &unreachedError{err}
		}
		return conn, nil
	}
	if len(spec.CABundle) > 0 {
		b.config.RootCAs = x509.NewCertPool()
		if !b.config.RootCAs.AppendCertsFromPEM(spec.CABundle) {
			b.broken = errors.New("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	b.current.Store(b.connect(certificate()))
	return b
}

// unreachedError says that a connection could not be opened, so that nothing has been sent.
type unreachedError struct{ error }

func (e *unreachedError) Unwrap() error { return e.error }

// connect returns connections, of which there are none yet.
func (b *backend) connect(shown *tls.Certificate) *connections {
	config := b.config.Clone()
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if shown != nil {
			return shown, nil
		}
		return &tls.Certificate{}, nil
	}
	c := &connections{
		shown: shown, shared: egress.Transport(b.dial, config), single: egress.Transport(b.dial, config.Clone()),
	}
	// What the client accepts is what it gets.
	c.shared.DisableCompression, c.single.DisableCompression = true, true
	c.single.ForceAttemptHTTP2, c.single.HTTP2 = false, nil
	c.single.TLSClientConfig.NextProtos = []string{"http/1.1"}
	return c
}

// connections returns those on which the server shows the certificate that it has now. Requests that are under way on
// others end there.
func (b *backend) connections() *connections {
	c, certificate := b.current.Load(), b.certificate()
	if c.shown == certificate {
		return c
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c = b.current.Load(); c.shown == certificate {
		return c
	}
	next := b.connect(certificate)
	b.current.Store(next)
	c.closeIdle()
	return next
}

// closeIdle closes connections that nothing is sent on.
func (b *backend) closeIdle() { b.current.Load().closeIdle() }

// rest closes the connections of a backend that has had no request since it was last checked, so that one that is not
// used costs nothing.
func (b *backend) rest() {
	if n := b.requests.Load(); b.seen.Swap(n) == n {
		b.closeIdle()
	}
}
