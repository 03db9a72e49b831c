// Package authn says who sends a request.
//
// It stands behind the listener on a request's path: package front calls Authenticate once per request and answers 401
// if it returns an error. Ways to prove who one is, in the order they are tried: a front proxy that says so in headers
// and proves itself by a certificate of its own authority; a client certificate of a trusted authority (name = common
// name, groups = organizations); and a bearer token, from a file or of one of the Bearers (service accounts first). Who
// brings none is system:anonymous, if there may be such; who brings only wrong ones is refused. Impersonation reads the
// headers by which a user asks to act as another; package authz decides about that.
//
// Rules: Kubernetes' authenticators of the same names (k8s.io/apiserver/pkg/authentication). They are not imported:
// they verify a certificate on every request, which costs more than the rest of a small read, and register global
// metrics.
//
// An Authenticator is safe for concurrent use. The users that it returns are shared between requests: read only.
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

// Config is what an Authenticator believes. The zero value knows only system:anonymous.
type Config struct {
	// Proxy says which front proxies name users; nil: none does.
	Proxy *FrontProxy
	// Proxies returns the front proxies in place of Proxy, where they change while the server runs; nil while there are
	// none. It is called for each request with a certificate. Other names in it come with another pool of Roots.
	Proxies func() *FrontProxy
	// ClientRoots returns the authorities whose client certificates are believed. It is called for each request with a
	// certificate; another pool than before means that what was verified with the old one must be verified again.
	ClientRoots func() *x509.CertPool
	Tokens      *Tokens
	// Bearers check tokens that Tokens does not know, one after the other until one knows the token.
	Bearers []Bearer
	// NoAnonymous refuses who brings no proof.
	NoAnonymous bool
	// AnonymousPaths are the only ones that who brings no proof may ask for; empty allows all.
	AnonymousPaths []string
	// Audiences are the names of this server, for whom the tokens of Tokens are good.
	Audiences []string
	Metrics   *Metrics         // nil does not count
	Now       func() time.Time // nil is time.Now
}

// Bearer says whose token it is and for which of the wanted audiences it is good; no wanted audiences stand for this
// server. nil without an error: it is none of its tokens. An error does not keep others from being asked.
type Bearer interface {
	Authenticate(ctx context.Context, token string, wanted []string) (user.Info, []string, error)
}

// Authenticator says who sends a request.
type Authenticator struct {
	proxies        *proxies      // nil without any
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

// Authenticate returns who sends r. An error means that r brought a proof and it is wrong (401); its text is for the
// log. Afterwards r has no Authorization header and none by which a front proxy names a user, so that nothing behind
// can use or leak it.
func (a *Authenticator) Authenticate(r *http.Request) (user.Info, error) {
	began := a.now()
	who, err := a.authenticate(r, began)
	a.metrics.count(who, err, time.Since(began)) // which reads one clock, now two
	if err == nil {
		delete(r.Header, "Authorization")
		if a.proxies != nil {
			a.proxies.clear(r.Header)
		}
	}
	return who, err
}

func (a *Authenticator) authenticate(r *http.Request, now time.Time) (user.Info, error) {
	who, refused := a.byCertificate(r, now)
	if who != nil {
		return who, nil
	}
	if token := bearerToken(r); token != "" {
		who, _, err := a.Token(r.Context(), token, nil)
		if err == nil {
			return who, nil
		}
		refused = append(refused, err)
	}
	token, others, err := protocolToken(r)
	if err != nil {
		refused = append(refused, err)
	} else if token != "" {
		who, _, err := a.Token(r.Context(), token, nil)
		if err == nil {
			r.Header.Set(protocolHeader, strings.Join(others, ","))
			return who, nil
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

// byCertificate returns who the certificate of the connection is, or who is named by a front proxy whose certificate
// it is; nil if it names no user.
func (a *Authenticator) byCertificate(r *http.Request, now time.Time) (who user.Info, refused []error) {
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
		who, err := a.certificates.user(chain, now)
		if err == nil && who != nil {
			return who, nil
		}
		if err != nil {
			refused = append(refused, err)
		}
	}
	if a.proxies != nil && a.proxies.current() != nil && named == nil {
		// Without a header a proxy's certificate names no user, and one that is not a proxy's is still a wrong proof.
		// It is asked last, so that other clients do not pay for what fails.
		if err := a.proxies.verify(chain, now); err != nil {
			refused = append(refused, err)
		}
	}
	return nil, refused
}

// Token returns whose bearer token it is, and for which of the wanted audiences it is good. No wanted audiences stand
// for this server. Its errors are for those who may review tokens.
func (a *Authenticator) Token(ctx context.Context, token string, wanted []string) (user.Info, []string, error) {
	if token == "" {
		return nil, nil, errInvalidToken
	}
	if who := a.tokens.user(token); who != nil {
		good := a.audiences
		if len(wanted) > 0 {
			good = slices.DeleteFunc(slices.Clone(wanted),
				func(audience string) bool { return !slices.Contains(a.audiences, audience) })
		}
		if len(wanted) == 0 || len(good) > 0 {
			return who, good, nil
		}
	}
	var refused []error
	for _, bearer := range a.bearers {
		who, good, err := bearer.Authenticate(ctx, token, wanted)
		if who != nil && err == nil {
			return &user.DefaultInfo{
				Name: who.GetName(), UID: who.GetUID(), Groups: authenticated(who.GetName(), who.GetGroups()),
				Extra: who.GetExtra(),
			}, good, nil
		}
		if err != nil {
			refused = append(refused, err)
		}
	}
	if len(refused) > 0 {
		// As a TokenReview shows it: in Kubernetes an authenticator that knows only the server's own token is asked
		// before.
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

// bearerToken returns the token of the Authorization header, "" if it is of another kind.
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

// authenticated returns groups with system:authenticated, which everybody has who is not anonymous.
func authenticated(name string, groups []string) []string {
	if name == user.Anonymous || slices.Contains(groups, user.AllAuthenticated) ||
		slices.Contains(groups, user.AllUnauthenticated) {
		return groups
	}
	return append(slices.Clip(groups), user.AllAuthenticated)
}
