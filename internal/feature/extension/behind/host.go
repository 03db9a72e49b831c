// Package behind connects an extension API server to the API server in front of it, the host: for authentication,
// authorization, namespaces, and the configuration of admission.
//
// The host names users in headers, and authenticates with the client certificate described by the ConfigMap
// kube-system/extension-apiserver-authentication. Clients that connect directly have certificates of the authority in
// that ConfigMap, or tokens, which the host reviews (TokenReview). The host also authorizes requests
// (SubjectAccessReview). Namespaces, policies and webhooks are mirrored: a list and a watch of each maintain copies in
// the store of this server, at their usual keys, so admission works as on the host.
//
// Source: the delegating options of k8s.io/apiserver 1.36. A Host is safe for concurrent use.
package behind

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/modes"
	"github.com/bowsprit/bowsprit/internal/auth/token"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Host is the API server in front.
type Host struct {
	config *rest.Config
	client *http.Client
	url    string

	registration *Registration // nil if the server does not register itself
	hosts        []string      // names of this server in its serving certificate

	trusted    atomic.Pointer[trusted]
	identified latch // of trusted
	mirrors    []*mirror
	log        *slog.Logger
}

// New returns the host that config reaches.
func New(config *rest.Config) (*Host, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("the API server in front: %w", err)
	}
	url, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the API server in front: %w", err)
	}
	h := &Host{
		config: config, client: client, url: strings.TrimSuffix(url.String(), "/"),
		log: slog.New(slog.DiscardHandler), identified: newLatch(),
	}
	for _, resource := range mirrored {
		h.mirrors = append(h.mirrors, &mirror{host: h, resource: resource, latch: newLatch()})
	}
	return h, nil
}

// Behind returns the parts of the server that the host provides.
func (h *Host) Behind() *part.Behind {
	return &part.Behind{
		Part:          h.part(),
		Authenticator: h.authenticator,
		Authorizer:    h.authorizer,
		Hosts:         h.hosts,
		Lifecycle: func(own *part.Host) admit.Plugin {
			return lifecycle{Lifecycle: admit.Lifecycle{View: own.View}, host: h}
		},
		Resolve: func(_ context.Context, namespace, name string, port int32) (string, error) {
			return fmt.Sprintf("%s.%s.svc:%d", name, namespace, port), nil // as in Kubernetes: by the cluster's DNS
		},
	}
}

// startLimit bounds how long the start waits for the host. The host may start later, or be a client of this server;
// then readiness reports the missing parts.
const startLimit = 30 * time.Second

// part follows the host while the server runs.
func (h *Host) part() part.Part {
	return part.Part{
		Name: "the API server in front",
		Start: func(ctx context.Context, own *part.Host) error {
			h.log = own.Log
			for _, m := range h.mirrors {
				m.own = own
				own.Background(m.run)
			}
			own.Background(h.followTrust)
			if h.registration != nil {
				own.Background(h.register(own))
			}
			ctx, cancel := context.WithTimeout(ctx, startLimit)
			defer cancel()
			if err := h.wait(ctx); err != nil {
				own.Log.Warn("the API server in front cannot be watched yet; the start continues, and the watch is retried",
					"server", h.url, "error", err)
			}
			return nil
		},
		Checks: func(*part.Host) []front.Check {
			return []front.Check{{Name: "host", ReadyOnly: true, Run: func(context.Context) error {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				return h.wait(ctx)
			}}}
		},
	}
}

// wait waits until the host has been read once. The error names the missing part.
func (h *Host) wait(ctx context.Context) error {
	if err := h.identified.wait(ctx); err != nil {
		return fmt.Errorf("the ConfigMap %s/%s of the API server in front: %w", trustNamespace, trustName, err)
	}
	for _, m := range h.mirrors {
		if err := m.wait(ctx); err != nil {
			return fmt.Errorf("%s of the API server in front: %w", m.resource.plural, err)
		}
	}
	return nil
}

// authenticator believes the host's headers, certificates of its authorities, and tokens that it vouches for.
func (h *Host) authenticator(own *part.Host) (*authn.Authenticator, error) {
	h.trusted.Store(&trusted{clients: x509.NewCertPool()})
	bearer, err := token.Delegate(h.config)
	if err != nil {
		return nil, err
	}
	return authn.New(authn.Config{
		ClientRoots: func() *x509.CertPool { return h.trusted.Load().clients },
		Bearers:     []authn.Bearer{bearer}, Metrics: authn.NewMetrics(own.Metrics), Now: own.Now,
		Proxies: func() *authn.FrontProxy { return h.trusted.Load().proxy },
	}), nil
}

// authorizer returns an authorizer that asks the host.
func (h *Host) authorizer(own *part.Host) (authz.Mode, error) {
	remote, err := modes.Delegate(h.config)
	if err != nil {
		return nil, err
	}
	return always{remote}, nil
}

// always lets everyone read the health endpoints, as extension API servers of Kubernetes do.
type always struct{ authz.Mode }

// Authorize implements authz.Authorizer.
func (a always) Authorize(ctx context.Context, u user.Info, info *request.Info) (authz.Decision, error) {
	if !info.IsResource {
		switch info.Path {
		case "/healthz", "/livez", "/readyz":
			return authz.Decision{Verdict: authz.Allow}, nil
		}
	}
	return a.Mode.Authorize(ctx, u, info)
}

// latch signals the first success of a reader, and holds the last error before it.
type latch struct {
	state *latchState
}

type latchState struct {
	once sync.Once
	open chan struct{}

	mu  sync.Mutex
	err error
}

func newLatch() latch { return latch{&latchState{open: make(chan struct{})}} }

func (l latch) done() { l.state.once.Do(func() { close(l.state.open) }) }

func (l latch) set(err error) {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	l.state.err = err
}

// wait waits for the success, or returns the last error when ctx ends.
func (l latch) wait(ctx context.Context) error {
	select {
	case <-l.state.open:
		return nil
	default:
	}
	select {
	case <-l.state.open:
		return nil
	case <-ctx.Done():
	}
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	if l.state.err == nil {
		return errors.New("no answer yet")
	}
	return l.state.err
}
