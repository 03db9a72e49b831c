package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/foreign/publickey"
)

// endpoint is one address with one server name, one set of authorities and one user: calls to it can share connections.
type endpoint struct {
	client *http.Client
	// large has a slot for each large response that is being read, so that webhooks with garbage responses cannot fill
	// the memory, however many calls there are.
	large chan struct{}
	used  time.Time // guarded by endpoints.mu
}

// endpointKey identifies an endpoint.
type endpointKey struct {
	authorities [sha256.Size]byte
	serverName  string // "" for URLs: the URL's own host
	address     string // of a service; "" for URLs
	user        *user  // with the client certificate
}

// endpoints are the endpoints in use. The zero value is ready.
type endpoints struct {
	mu struct {
		sync.Mutex
		byKey map[endpointKey]*endpoint
	}
}

const (
	// unusedFor is how long an unused endpoint is kept. Its connections are closed before that.
	unusedFor = 10 * time.Minute
	// maxEndpoints bounds the number of endpoints; the least recently used one is dropped. Kubernetes keeps as many
	// clients.
	maxEndpoints = 200
	// maxLarge is the number of large responses of an endpoint that are read concurrently.
	maxLarge = 8
)

// endpoint returns the current endpoint of a target. A service is resolved at each call, so that calls spread over its
// addresses and follow changes. u are the credentials, nil if there are none.
func (c *Client) endpoint(ctx context.Context, t Target, u *user) (*endpoint, error) {
	authorities := bytes.TrimSpace(t.CABundle) // whitespace counts as none
	key := endpointKey{authorities: sha256.Sum256(authorities), user: u}
	if s := t.Service; s != nil {
		if c.options.Resolve == nil {
			return nil, errors.New("services cannot be resolved")
		}
		address, err := c.options.Resolve(ctx, s.Namespace, s.Name, s.port())
		if err != nil {
			return nil, err
		}
		key.serverName, key.address = s.serverName(), address
	}
	return c.endpoints.get(key, time.Now(), func() (*endpoint, error) { return c.newEndpoint(key, authorities) })
}

func (c *Client) newEndpoint(key endpointKey, authorities []byte) (*endpoint, error) {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: key.serverName, GetClientCertificate: key.user.clientCertificate,
	}
	if len(authorities) > 0 {
		var err error
		if config.RootCAs, err = publickey.Authorities(authorities); err != nil {
			return nil, err
		}
	}
	var transport *http.Transport
	if key.address == "" {
		transport = egress.Transport(c.options.Egress.Dial(egress.ControlPlane), config)
		transport.Proxy = http.ProxyFromEnvironment
	} else {
		dial := c.options.Egress.Dial(egress.Cluster)
		transport = egress.Transport(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dial(ctx, network, key.address)
		}, config)
	}
	return &endpoint{
		client: &http.Client{
			Transport: transport,
			// A webhook cannot redirect to another address.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		large: make(chan struct{}, maxLarge),
	}, nil
}

// get returns the endpoint of a key, created by make if there is none yet.
func (s *endpoints) get(key endpointKey, now time.Time, make func() (*endpoint, error)) (*endpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.mu.byKey[key]; e != nil {
		e.used = now
		return e, nil
	}
	e, err := make()
	if err != nil {
		return nil, err
	}
	if s.mu.byKey == nil {
		s.mu.byKey = map[endpointKey]*endpoint{}
	}
	s.sweepLocked(now)
	e.used = now
	s.mu.byKey[key] = e
	return e, nil
}

// sweepLocked drops unused endpoints and makes room for one.
func (s *endpoints) sweepLocked(now time.Time) {
	var oldest endpointKey
	var at time.Time
	for key, e := range s.mu.byKey {
		if now.Sub(e.used) > unusedFor {
			s.dropLocked(key)
		} else if at.IsZero() || e.used.Before(at) {
			oldest, at = key, e.used
		}
	}
	if len(s.mu.byKey) >= maxEndpoints {
		s.dropLocked(oldest)
	}
}

// dropLocked forgets an endpoint. Calls that run end well: their connections are closed when they become idle.
func (s *endpoints) dropLocked(key endpointKey) {
	s.mu.byKey[key].client.CloseIdleConnections()
	delete(s.mu.byKey, key)
}

func (s *endpoints) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.mu.byKey {
		s.dropLocked(key)
	}
}
