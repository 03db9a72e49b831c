// Package authn authenticates requests.
//
// It runs behind the listener on a request's path: package front calls Authenticate once for each request and responds
// with 401 after an error. Credentials are tried in this order: the headers of a front proxy, which authenticates
// itself by a certificate of a separate authority; a client certificate of a trusted authority (name = common name,
// groups = organizations); and a bearer token, from a file or of one of the Bearers (service accounts first). A request
// without credentials is system:anonymous, if that is allowed; a request with only invalid credentials is refused.
// Impersonation parses the headers of a request to act as another user; package authz authorizes it.
//
// Rules: Kubernetes' authenticators of the same names (k8s.io/apiserver/pkg/authentication). They are not imported:
// they verify a certificate on every request, which costs more than the rest of a small read, and register global
// metrics.
//
// An Authenticator is safe for concurrent use. The returned users are shared between requests: read only.
package authn

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// Config selects the credentials that an Authenticator accepts. The zero value accepts only system:anonymous.
type Config struct {
	// Proxy configures the front proxies that may name users; nil means none.
	Proxy *FrontProxy
	// Proxies overrides Proxy with a function, for front proxies that change while the server runs; it returns nil
	// while there are none. It is called for each request with a certificate. If the names change, so must the pool of
	// Roots.
	Proxies func() *FrontProxy
	// ClientRoots returns the authorities of accepted client certificates. It is called for each request with a
	// certificate; a new pool invalidates all earlier verifications.
	ClientRoots func() *x509.CertPool
	Tokens      *Tokens
	// Bearers check tokens missing in Tokens, in order, until one accepts the token.
	Bearers []Bearer
	// NoAnonymous refuses requests without credentials.
	NoAnonymous bool
	// AnonymousPaths lists the only paths allowed without credentials; empty allows all.
	AnonymousPaths []string
	// Audiences lists the names of this server, the audiences of the tokens in Tokens.
	Audiences []string
	Metrics   *Metrics         // nil counts nothing
	Now       func() time.Time // nil means time.Now
}

// Bearer returns the user of a token and the wanted audiences for which it is valid; no wanted audiences means this
// server. It returns nil without an error for a token of another kind. After an error the next Bearer is tried.
type Bearer interface {
	Authenticate(ctx context.Context, token string, wanted []string) (user.Info, []string, error)
}

// Authenticator authenticates requests.
type Authenticator struct {
	proxies        *proxies      // nil if there are none
	certificates   *certificates // nil without ClientRoots
	tokens         *Tokens
	bearers        []Bearer
	noAnonymous    bool
	anonymousPaths []string
	audiences      []string
	metrics        *Metrics
	now            func() time.Time
}

// New returns an Authenticator.
func New(c Config) *Authenticator {
	if c.Now == nil {
		c.Now = time.Now
	}
	a := &Authenticator{
		tokens: c.Tokens, bearers: c.Bearers, noAnonymous: c.NoAnonymous, anonymousPaths: c.AnonymousPaths,
		audiences: c.Audiences, metrics: c.Metrics, now: c.Now,
	}
	if c.ClientRoots != nil {
		a.certificates = &certificates{roots: c.ClientRoots, names: certificateUser}
	}
	if c.Proxy != nil || c.Proxies != nil {
		a.proxies = newProxies(c)
	}
	return a
}

// Authenticate returns the user of r. An error means that r has invalid credentials (401); its text is for the log.
// Afterwards r has no Authorization header and no front proxy header, so that later code can neither use nor leak them.
func (a *Authenticator) Authenticate(r *http.Request) (user.Info, error) {
	began := a.now()
	u, err := a.authenticate(r, began)
	a.metrics.count(u, err, time.Since(began)) // reads one clock, where now reads two
	if err == nil {
		delete(r.Header, "Authorization")
		if a.proxies != nil {
			a.proxies.clear(r.Header)
		}
	}
	return u, err
}

func (a *Authenticator) authenticate(r *http.Request, now time.Time) (user.Info, error) {
	u, refused := a.byCertificate(r, now)
	if u != nil {
		return u, nil
	}
	if token := bearerToken(r); token != "" {
		u, _, err := a.Token(r.Context(), token, nil)
		if err == nil {
			return u, nil
		}
		refused = append(refused, err)
	}
	token, others, err := protocolToken(r)
	if err != nil {
		refused = append(refused, err)
	} else if token != "" {
		u, _, err := a.Token(r.Context(), token, nil)
		if err == nil {
			r.Header.Set(protocolHeader, strings.Join(others, ","))
			return u, nil
		}
		refused = append(refused, err)
	}
	if len(refused) > 0 {
		return nil, errors.Join(refused...)
	}
	if a.noAnonymous || len(a.anonymousPaths) > 0 && !slices.Contains(a.anonymousPaths, r.URL.Path) {
		return nil, errNoProof
	}
	return anonymous, nil
}

// byCertificate returns the user of the connection's certificate, or the user named by a front proxy with that
// certificate; nil if it names no user.
func (a *Authenticator) byCertificate(r *http.Request, now time.Time) (u user.Info, refused []error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	chain := r.TLS.PeerCertificates
	var named *user.DefaultInfo
	if a.proxies != nil && a.proxies.current() != nil {
		if named = a.proxies.user(r.Header); named != nil {
			err := a.proxies.verify(chain, now)
			if err == nil {
				return named, nil
			}
			refused = append(refused, err)
		}
	}
	if a.certificates != nil {
		a.metrics.expiration(chain[0].NotAfter.Sub(now))
		u, err := a.certificates.user(chain, now)
		if err == nil && u != nil {
			return u, nil
		}
		if err != nil {
			refused = append(refused, err)
		}
	}
	if a.proxies != nil && a.proxies.current() != nil && named == nil {
		// Without the headers a proxy's certificate names no user, but any other certificate is invalid. Verify it
		// last, so that other clients do not pay for the failure.
		if err := a.proxies.verify(chain, now); err != nil {
			refused = append(refused, err)
		}
	}
	return nil, refused
}

// Token returns the user of a bearer token, and the wanted audiences for which it is valid. No wanted audiences means
// this server. Its errors are for users who may review tokens.
func (a *Authenticator) Token(ctx context.Context, token string, wanted []string) (user.Info, []string, error) {
	if token == "" {
		return nil, nil, errInvalidToken
	}
	if u := a.tokens.user(token); u != nil {
		good := a.audiences
		if len(wanted) > 0 {
			good = slices.DeleteFunc(slices.Clone(wanted),
				func(audience string) bool { return !slices.Contains(a.audiences, audience) })
		}
		if len(wanted) == 0 || len(good) > 0 {
			return u, good, nil
		}
	}
	var refused []error
	for _, bearer := range a.bearers {
		u, good, err := bearer.Authenticate(ctx, token, wanted)
		if u != nil && err == nil {
			return &user.DefaultInfo{
				Name: u.GetName(), UID: u.GetUID(), Groups: authenticated(u.GetName(), u.GetGroups()),
				Extra: u.GetExtra(),
			}, good, nil
		}
		if err != nil {
			refused = append(refused, err)
		}
	}
	if len(refused) > 0 {
		// As in a TokenReview of Kubernetes, where an authenticator with only the server's own token comes first.
		return nil, nil, utilerrors.NewAggregate(append([]error{errInvalidToken}, refused...))
	}
	return nil, nil, errInvalidToken
}

var (
	errInvalidToken = errors.New("invalid bearer token")
	errNoProof      = errors.New(
		"neither a client certificate nor a bearer token, and anonymous requests are not answered")
)

// anonymous is never changed.
var anonymous = &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}

// bearerToken returns the token in the Authorization header, "" for another scheme.
func bearerToken(r *http.Request) string {
	values := r.Header["Authorization"]
	if len(values) == 0 {
		return ""
	}
	kind, rest, ok := strings.Cut(strings.TrimSpace(values[0]), " ")
	if !ok || !strings.EqualFold(kind, "bearer") {
		return ""
	}
	token, _, more := strings.Cut(rest, " ")
	if token == "" && more {
		request.Warn(r.Context(),
			"the provided Authorization header contains extra space before the bearer token, and is ignored")
	}
	return token
}

// authenticated adds system:authenticated, the group of all users except anonymous, to groups.
func authenticated(name string, groups []string) []string {
	if name == user.Anonymous || slices.Contains(groups, user.AllAuthenticated) ||
		slices.Contains(groups, user.AllUnauthenticated) {
		return groups
	}
	return append(slices.Clip(groups), user.AllAuthenticated)
}
