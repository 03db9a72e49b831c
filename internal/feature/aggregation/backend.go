package aggregation

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"sync/atomic"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/foreign/publickey"
	"github.com/bowsprit/bowsprit/internal/net/forward"
)

// backend is the service of an APIService, with the expected certificate. APIServices with an equal service share its
// connections.
type backend struct {
	*forward.Connections
	// broken is the error that prevents all requests.
	broken error
	// requests counts the requests of clients.
	requests atomic.Int64
	// lists counts the list requests in progress.
	lists atomic.Int64
	// seen is the value of requests at the last check.
	seen atomic.Int64
}

// backendKey identifies the APIServices that can share connections.
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

// newBackend returns the backend of a service, with connections that dial opens. certificate returns the client
// certificate, or nil for none.
func newBackend(
	spec *apiregistrationv1.APIServiceSpec, dial egress.Dial, certificate func() *tls.Certificate,
) *backend {
	b, config := &backend{}, &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: spec.Service.Name + "." + spec.Service.Namespace + ".svc",
		InsecureSkipVerify: spec.InsecureSkipTLSVerify,
	}
	if len(spec.CABundle) > 0 {
		if config.RootCAs, b.broken = publickey.Authorities(spec.CABundle); b.broken != nil {
			config.RootCAs = x509.NewCertPool() // trusts nobody
		}
	}
	b.Connections = forward.NewConnections(config, dial, certificate)
	return b
}

// rest closes the connections of a backend without a request since the last check, so that an unused one costs nothing.
func (b *backend) rest() {
	if n := b.requests.Load(); b.seen.Swap(n) == n {
		b.CloseIdle()
	}
}
