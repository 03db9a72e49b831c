package token

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
	"k8s.io/client-go/util/cert"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// issuers holds the issuers of one configuration.
type issuers struct {
	all    authenticator.Token
	urls   []string
	checks []func() error
	end    context.CancelFunc
	idle   []*http.Transport // to be closed
}

// newIssuers returns a set that starts to discover its issuers at once.
func (r *Remote) newIssuers(c *apiserver.AuthenticationConfiguration) (*issuers, error) {
	ctx, end := context.WithCancel(r.life)
	set := &issuers{end: end}
	var methods []authenticator.Token
	for _, j := range c.JWT {
		client, err := set.client(j, r.config.Egress)
		if err != nil {
			set.cancel()
			return nil, err
		}
		one, err := oidc.New(ctx, oidc.Options{
			JWTAuthenticator: j, Client: client, Compiler: compiler(),
			SupportedSigningAlgs: r.algs, DisallowedIssuers: r.config.Own,
			APIServerID: r.config.ServerID,
		})
		if err != nil {
			set.cancel()
			return nil, err
		}
		methods = append(methods, one)
		set.checks = append(set.checks, one.HealthCheck)
		set.urls = append(set.urls, j.Issuer.URL)
	}
	// If a token's issuer refuses it, the refusal is final; no other issuer is tried.
	set.all = authenticator.WrapAudienceAgnosticToken(r.config.Audiences, union.NewFailOnError(methods...))
	return set, nil
}

// client returns the HTTP client for an issuer. It is created here, not by the library, so that its connections can be
// closed, its responses are bounded, and tokens with unknown keys do not cause unlimited requests to the issuer.
func (s *issuers) client(j apiserver.JWTAuthenticator, egress func(kind string) Dial) (*http.Client, error) {
	var dial Dial
	if kind := string(j.Issuer.EgressSelectorType); kind != "" {
		if egress == nil {
			return nil, fmt.Errorf("oidc: egress lookup required with egress selector type %q", kind)
		}
		if dial = egress(kind); dial == nil {
			return nil, fmt.Errorf("oidc: egress lookup for %q is not configured", kind)
		}
	}
	var roots *x509.CertPool // nil means the host's
	if j.Issuer.CertificateAuthority != "" {
		var err error
		if roots, err = cert.NewPoolFromBytes([]byte(j.Issuer.CertificateAuthority)); err != nil {
			return nil, fmt.Errorf("Failed to read the CA contents: %w", err) //lint:ignore ST1005 kube's text
		}
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{
		DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots}, MaxResponseHeaderBytes: foreign.MaxHeader,
	})
	s.idle = append(s.idle, transport)
	return &http.Client{Transport: newPaced(keySets{foreign.Document(transport)}), Timeout: 30 * time.Second}, nil
}

// cancel ends the set, which must not be used afterwards.
func (s *issuers) cancel() {
	s.end()
	for _, transport := range s.idle {
		transport.CloseIdleConnections()
	}
}

func (s *issuers) healthy() error {
	var errs []error
	for _, check := range s.checks {
		errs = append(errs, foreign.Error(check()))
	}
	return utilerrors.NewAggregate(errs)
}

// healthWait configures how long to wait for new issuers.
type healthWait struct{ every, most time.Duration }

// wait returns when all issuers of the set are ready, or the last error at the time limit.
func (h healthWait) wait(ctx context.Context, set *issuers) error {
	ctx, cancel := context.WithTimeout(ctx, h.most)
	defer cancel()
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		err := set.healthy()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-tick.C:
		}
	}
}

// retirements are the ends of sets that have been replaced.
type retirements struct {
	mu      sync.Mutex
	pending map[*time.Timer]func()
}

// after has f called once d has passed, or by stop.
func (t *retirements) after(d time.Duration, f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		t.pending = map[*time.Timer]func(){}
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		t.mu.Lock()
		delete(t.pending, timer)
		t.mu.Unlock()
		f()
	})
	t.pending[timer] = f
}

func (t *retirements) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for timer, f := range t.pending {
		if timer.Stop() {
			f()
		}
	}
	t.pending = nil
}
