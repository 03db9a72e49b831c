package aggregation

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync/atomic"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/forward"
)

// backend is a service as APIServices describe it: what its certificate must say. APIServices that say the same share
// its connections.
type backend struct {
	*forward.Connections
	// broken is why nothing can be sent.
	broken error
	// requests counts those that were sent for clients.
	requests atomic.Int64
	// lists counts those of them that are lists and under way.
	lists atomic.Int64
	// seen is requests when the service was last checked.
	seen atomic.Int64
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
	b, config := &backend{}, &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: spec.Service.Name + "." + spec.Service.Namespace + ".svc",
		InsecureSkipVerify: spec.InsecureSkipTLSVerify,
	}
	if len(spec.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(spec.CABundle) {
			b.broken = errors.New("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	b.Connections = forward.NewConnections(config, dial, certificate)
	return b
}

// rest closes the connections of a backend that has had no request since it was last checked, so that one that is not
// used costs nothing.
func (b *backend) rest() {
	if n := b.requests.Load(); b.seen.Swap(n) == n {
		b.CloseIdle()
	}
}
