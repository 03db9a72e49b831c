// Package token checks bearer tokens that the server has not signed itself: bootstrap tokens of joining nodes
// (Bootstrap), and external tokens (Remote): JSON Web Tokens of OpenID Connect issuers, and tokens accepted by a
// webhook.
//
// Package authn calls it for tokens that are neither in the token file nor from a service account. Flags or an
// AuthenticationConfiguration configure the issuers. That file is reloaded when it changes: a new set of issuers
// replaces the previous one when all of them are reachable, and the old set finishes the requests in progress.
//
// Rules, texts and metrics come from Kubernetes' own authenticators (k8s.io/apiserver), which are imported: they are
// off the path of requests with a certificate or a service account's token. A Remote is safe for concurrent use.
package token

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// Config configures external token authentication.
type Config struct {
	// File is an AuthenticationConfiguration; "" means none. It excludes OIDC.
	File string
	OIDC OIDC
	// WebhookFile is a kubeconfig for the webhook; "" means none. WebhookVersion is the version of its TokenReviews,
	// and WebhookTTL how long its results are cached.
	WebhookFile, WebhookVersion string
	WebhookTTL                  time.Duration
	// Audiences lists the names of this server, the audiences of issuers' tokens.
	Audiences []string
	// Own lists the issuers of service accounts' tokens, which no external issuer may use.
	Own []string
	// Dial opens connections to the webhook; nil dials directly.
	Dial Dial
	// Egress returns the dialer for issuers with egressSelectorType kind, nil if the egress configuration lacks it.
	// Egress itself is nil without such a configuration.
	Egress func(kind string) Dial
	// ServerID distinguishes replicas in metrics.
	ServerID string
	Metrics  *prometheus.Registry
	Log      *slog.Logger
}

// Dial opens a connection to an address, "host:port".
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// successTTL is how long a token that was accepted is not checked again: kube's.
const successTTL = 10 * time.Second

// Remote checks tokens with issuers and a webhook.
type Remote struct {
	config    Config
	all       authenticator.Token // with a cache
	anonymous *apiserver.AnonymousAuthConfig
	algs      []string
	metrics   *reloadMetrics // nil without a file

	life   context.Context // of the libraries' background work
	end    context.CancelFunc
	timers retirements

	issuers atomic.Pointer[issuers]
	// reload is the state of Reload; one call at a time.
	reload struct {
		sync.Mutex
		seen       string    // the content in effect, or an invalid one
		failed     string    // the content with unreachable issuers
		retryAt    time.Time // when to try failed again
		complainAt time.Time // when to report a missing file again
	}
	health healthWait
	now    func() time.Time
}

// Open returns a Remote, nil if c configures none. Its errors have Kubernetes' texts. Close ends it.
func Open(c Config) (*Remote, error) {
	if c.File == "" && !c.OIDC.used() && c.WebhookFile == "" {
		return nil, nil
	}
	r := &Remote{config: c, health: healthWait{every: time.Second / 4, most: time.Minute}, now: time.Now}
	configuration, err := r.configuration()
	if err != nil {
		return nil, err
	}
	r.anonymous = configuration.Anonymous
	r.life, r.end = context.WithCancel(context.Background())
	first, err := r.newIssuers(configuration)
	if err != nil {
		r.end()
		return nil, err
	}
	r.issuers.Store(first)
	methods := []authenticator.Token{authenticator.TokenFunc(r.tryIssuers)}
	if c.WebhookFile != "" {
		hook, err := newWebhook(c)
		if err != nil {
			r.end()
			return nil, err
		}
		methods = append(methods, hook)
	}
	r.all = tokencache.New(union.New(methods...), true, successTTL, 0)
	if c.Metrics != nil && c.File != "" {
		r.metrics = newReloadMetrics(c.Metrics, c.ServerID)
		r.metrics.applied(r.reload.seen)
	}
	return r, nil
}

// Close ends the background work of the Remote.
func (r *Remote) Close() {
	r.end()
	r.timers.stop()
	if set := r.issuers.Load(); set != nil {
		set.cancel()
	}
}

// Anonymous returns the file's setting for requests without credentials: whether they are allowed, and the only paths
// for them. said is false if there is no such setting.
func (r *Remote) Anonymous() (enabled bool, paths []string, configured bool) {
	if r == nil || r.anonymous == nil {
		return false, nil, false
	}
	for _, condition := range r.anonymous.Conditions {
		paths = append(paths, condition.Path)
	}
	return r.anonymous.Enabled, paths, true
}

// Authenticate returns the user of a token, and the wanted audiences for which it is valid. It implements authn.Bearer.
func (r *Remote) Authenticate(ctx context.Context, token string, wanted []string) (user.Info, []string, error) {
	if len(wanted) == 0 {
		wanted = r.config.Audiences
	}
	answer, ok, err := r.all.AuthenticateToken(authenticator.WithAudiences(ctx, wanted), token)
	if err != nil || !ok {
		return nil, nil, foreign.Error(err)
	}
	return answer.User, answer.Audiences, nil
}

func (r *Remote) tryIssuers(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	return r.issuers.Load().all.AuthenticateToken(ctx, token)
}

// webhookRetry is Kubernetes' backoff for failing webhooks.
var webhookRetry = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}

func newWebhook(c Config) (authenticator.Token, error) {
	client, err := webhookutil.LoadKubeconfig(c.WebhookFile, c.Dial)
	if err != nil {
		return nil, fmt.Errorf("--authentication-token-webhook-config-file: %w", err)
	}
	client.Wrap(foreign.Document)
	hook, err := webhook.New(client, c.WebhookVersion, c.Audiences, webhookRetry)
	if err != nil {
		return nil, err
	}
	if c.WebhookTTL > 0 && c.WebhookTTL < successTTL {
		c.Log.Warn("answers of the token webhook are cached longer than --authentication-token-webhook-cache-ttl",
			"ttl", c.WebhookTTL, "remembered", successTTL)
	}
	return tokencache.New(hook, false, c.WebhookTTL, c.WebhookTTL), nil
}
