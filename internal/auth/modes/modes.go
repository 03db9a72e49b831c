// Package modes combines the authorization modes of --authorization-mode, or of an AuthorizationConfiguration, which is
// reloaded when it changes.
//
// It implements package authz on the path of a request; the process calls its Modes, which call the current
// authz.Union. Modes that are not implemented here (Node, RBAC, ABAC) come from functions, each called once if the
// initial configuration names it. Webhooks are Kubernetes' own (k8s.io/apiserver), as are the checks of the file: their
// texts, CEL conditions and cached decisions are a contract that is not ours to change. Metrics are counted here, under
// Kubernetes' names. Modes is safe for concurrent use.
package modes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	schemacel "github.com/bowsprit/bowsprit/internal/object/schema/cel"
	"github.com/bowsprit/bowsprit/internal/request"
)

// The modes, as flags and AuthorizationConfiguration name them.
const (
	AlwaysAllow = "AlwaysAllow"
	AlwaysDeny  = "AlwaysDeny"
	ABAC        = "ABAC"
	Webhook     = "Webhook"
	RBAC        = "RBAC"
	Node        = "Node"
)

// All returns all modes, in the order used in messages.
func All() []string { return []string{AlwaysAllow, AlwaysDeny, ABAC, Webhook, RBAC, Node} }

// Config configures Modes.
type Config struct {
	// File is an AuthorizationConfiguration; if it is empty, Names and Webhook apply.
	File    string
	Names   []string
	Webhook WebhookConfig
	// Make creates modes that depend on the server, by name.
	Make map[string]func() (authz.Mode, error)
	// Dial opens connections to webhooks; nil dials directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	Metrics *prometheus.Registry
	// ServerID identifies this server among several in metrics.
	ServerID string
	Now      func() time.Time
	Log      *slog.Logger
}

// WebhookConfig configures the mode Webhook, if there is no file.
type WebhookConfig struct {
	KubeconfigFile string
	// Version is the version of SubjectAccessReview: v1 or v1beta1.
	Version string
	// AuthorizedTTL and UnauthorizedTTL are how long decisions are cached; zero or less disables caching.
	AuthorizedTTL, UnauthorizedTTL time.Duration
}

// Modes authorizes requests according to the configuration.
type Modes struct {
	config   Config
	made     map[string]authz.Mode
	metrics  *metrics
	compiler authorizationcel.Compiler // nil without a file
	current  atomic.Pointer[authz.Union]
	required []apiserver.AuthorizerType // initial modes except webhooks, which must stay

	reload struct {
		sync.Mutex
		seen       string // content of the file at the last check
		last       *apiserver.AuthorizationConfiguration
		complainAt time.Time // when to report a missing file again
	}
}

var _ authz.Mode = (*Modes)(nil)

// Open returns the Modes of a configuration.
func Open(c Config) (*Modes, error) {
	m := &Modes{config: c, made: map[string]authz.Mode{}, metrics: newMetrics(c.Metrics, c.File != "", c.ServerID)}
	configuration := fromFlags(c)
	if c.File != "" {
		m.compiler = authorizationcel.NewCompiler(schemacel.Bounded())
		data, loaded, err := m.load()
		if err != nil {
			return nil, fmt.Errorf("--authorization-config: %w", err)
		}
		m.reload.seen, configuration = data, loaded
	}
	for _, one := range configuration.Authorizers {
		name := string(one.Type)
		if name != Webhook {
			m.required = append(m.required, one.Type)
		}
		if make := c.Make[name]; make != nil {
			mode, err := make()
			if err != nil {
				return nil, err
			}
			m.made[name] = mode
		}
	}
	union, err := m.build(configuration)
	if err != nil {
		return nil, err
	}
	m.reload.last = configuration
	m.current.Store(&union)
	m.metrics.applied(m.reload.seen)
	return m, nil
}

// Authorize implements authz.Authorizer.
func (m *Modes) Authorize(ctx context.Context, u user.Info, info *request.Info) (authz.Decision, error) {
	return m.current.Load().Authorize(ctx, u, info)
}

// Rules implements authz.Ruler.
func (m *Modes) Rules(ctx context.Context, u user.Info, namespace string) (authz.Rules, error) {
	return m.current.Load().Rules(ctx, u, namespace)
}

// fromFlags returns the configuration that flags mean.
func fromFlags(c Config) *apiserver.AuthorizationConfiguration {
	out := &apiserver.AuthorizationConfiguration{}
	for _, name := range c.Names {
		one := apiserver.AuthorizerConfiguration{Type: apiserver.AuthorizerType(name), Name: strings.ToLower(name)}
		if name == Webhook {
			w := c.Webhook
			one.Name = "default"
			one.Webhook = &apiserver.WebhookConfiguration{
				AuthorizedTTL:             metav1.Duration{Duration: w.AuthorizedTTL},
				CacheAuthorizedRequests:   w.AuthorizedTTL > 0,
				UnauthorizedTTL:           metav1.Duration{Duration: w.UnauthorizedTTL},
				CacheUnauthorizedRequests: w.UnauthorizedTTL > 0,
				Timeout:                   metav1.Duration{Duration: 30 * time.Second},
				FailurePolicy:             apiserver.FailurePolicyNoOpinion, SubjectAccessReviewVersion: w.Version,
				ConnectionInfo: apiserver.WebhookConnectionInfo{
					Type:           apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile,
					KubeConfigFile: &w.KubeconfigFile,
				},
			}
		}
		out.Authorizers = append(out.Authorizers, one)
	}
	return out
}

// build returns the union for a configuration.
func (m *Modes) build(c *apiserver.AuthorizationConfiguration) (authz.Union, error) {
	if len(c.Authorizers) == 0 {
		return nil, errors.New("at least one authorization mode must be passed")
	}
	var union authz.Union
	for _, one := range c.Authorizers {
		mode, err := m.mode(one)
		if err != nil {
			return nil, err
		}
		union = append(union, named{m.metrics.count(mode, string(one.Type), one.Name), one.Name})
	}
	return union, nil
}

func (m *Modes) mode(c apiserver.AuthorizerConfiguration) (authz.Mode, error) {
	switch name := string(c.Type); name {
	case AlwaysAllow:
		return authz.AlwaysAllow{}, nil
	case AlwaysDeny:
		return authz.AlwaysDeny{}, nil
	case Webhook:
		return m.webhook(c)
	case Node, RBAC, ABAC:
		if mode := m.made[name]; mode != nil {
			return mode, nil
		}
		return nil, fmt.Errorf("authorizer type %s is not allowed if it was not enabled at initial server startup",
			name)
	default:
		return nil, fmt.Errorf("unknown authorization mode %s specified", name)
	}
}
