// Package token checks bearer tokens that the server has not signed itself: those by which nodes join the cluster
// (Bootstrap), and those of others (Remote): JSON Web Tokens of issuers of OpenID Connect, and whatever a webhook
// knows.
//
// It stands behind package authn, which asks it about tokens that are neither in the token file nor of a service
// account. What issuers may say is configured by flags, or by an AuthenticationConfiguration, a file that is read again
// when it changes: a new set of issuers replaces the one before when all of them can be reached, and the old set stays
// good for those requests that it is checking already.
//
// Rules, texts and metrics are those of Kubernetes' own authenticators (k8s.io/apiserver), which are imported: they are
// off the path of requests with a certificate or a token of a service account. A Remote is safe for concurrent use.
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

	"github.com/bowsprit/bowsprit/internal/foreign"
)

// Config says who else is believed about tokens.
type Config struct {
	// File is an AuthenticationConfiguration; "" is none. It and OIDC exclude each other.
	File string
	OIDC OIDC
	// WebhookFile is a kubeconfig that says where the webhook is; "" is none. WebhookVersion is that of the TokenReview
	// that it is asked, and WebhookTTL how long its answers are remembered.
	WebhookFile, WebhookVersion string
	WebhookTTL                  time.Duration
	// Audiences are the names of this server; tokens of issuers are good for them.
	Audiences []string
	// Own are the issuers of service accounts' tokens, which no other may be.
	Own []string
	// Dial opens connections to the webhook; nil dials directly.
	Dial Dial
	// Egress returns what opens connections to issuers whose egressSelectorType is kind, nil if the configuration of
	// egress says nothing of it. Egress itself is nil if there is no such configuration.
	Egress func(kind string) Dial
	// ServerID is what replicas are told apart by in metrics.
	ServerID string
	Metrics  *prometheus.Registry
	Log      *slog.Logger
}

// Dial opens a connection to an address, "host:port".
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// successTTL is how long a token that was accepted is not checked again: kube's.
const successTTL = 10 * time.Second

// Remote asks issuers and a webhook about tokens.
type Remote struct {
	config    Config
	all       authenticator.Token // with a cache
	anonymous *apiserver.AnonymousAuthConfig
	algs      []string
	metrics   *reloadMetrics // nil without a file

	life   context.Context // of background work of the libraries
	end    context.CancelFunc
	timers retirements

	issuers atomic.Pointer[issuers]
	// reload is what Reload knows; one call at a time.
	reload struct {
		sync.Mutex
		seen       string    // the content that is in force, or that can never be
		failed     string    // the content whose issuers were not all there
		retryAt    time.Time // when to try failed again
		complainAt time.Time // when to say once more that there is no file
	}
	health healthWait
	now    func() time.Time
}

// Open returns a Remote, nil if c names no one to ask. Its errors have kube's texts. Close ends it.
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
	methods := []authenticator.Token{authenticator.TokenFunc(r.askIssuers)}
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

// Close ends what the Remote does in the background.
func (r *Remote) Close() {
	r.end()
	r.timers.stop()
	if set := r.issuers.Load(); set != nil {
		set.cancel()
	}
}

// Anonymous says what the file says of requests without proof: whether there may be any, and the only paths that they
// may be for. said is false if it says nothing.
func (r *Remote) Anonymous() (enabled bool, paths []string, said bool) {
	if r == nil || r.anonymous == nil {
		return false, nil, false
	}
	for _, condition := range r.anonymous.Conditions {
		paths = append(paths, condition.Path)
	}
	return r.anonymous.Enabled, paths, true
}

// Authenticate returns whose token it is, and for which of the wanted audiences it is good. It implements
// authn.Bearer.
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

func (r *Remote) askIssuers(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	return r.issuers.Load().all.AuthenticateToken(ctx, token)
}

// webhookRetry is how often and how fast a webhook that fails is asked again: kube's.
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
		c.Log.Warn("answers of the token webhook are remembered longer than --authentication-token-webhook-cache-ttl says",
			"ttl", c.WebhookTTL, "remembered", successTTL)
	}
	return tokencache.New(hook, false, c.WebhookTTL, c.WebhookTTL), nil
}
