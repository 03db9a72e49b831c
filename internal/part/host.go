package part

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/configuration"
	"github.com/bowsprit/bowsprit/internal/admit/manifest"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/front/flow"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Host is the core's interface for parts. Its fields are set in their order here. Fields below a comment that names a
// function of Part are nil while this function runs, and set when its results are used.
type Host struct {
	Log     *slog.Logger
	Started time.Time
	// Now is the clock, and NewUID creates uids: both are injected for tests.
	Now    func() time.Time
	NewUID func() string
	// AfterFunc calls a function in a goroutine of its own after a while by the clock; stop reports whether it has kept
	// it from being called.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// Runs reports whether a controller is switched on, by its name.
	Runs func(controller string) bool
	// URL is the URL of the server, such as "https://127.0.0.1:6443".
	URL string
	// Port is the server's port, 0 if its listener has none.
	Port int
	// Dir is the directory of persistent files, "" if there is none.
	Dir          string
	Store        *store.Store
	Certificates *pki.PKI
	Metrics      *prometheus.Registry
	// Egress opens connections to other servers.
	Egress *egress.Egress

	// Not for Resources.

	Catalog *catalog.Catalog
	View    *watchcache.View
	// Storing encodes stored objects; nil means JSON.
	Storing       *convert.Storing
	Webhooks      *webhook.Client
	Tokens        *serviceaccount.Tokens
	Authenticator *authn.Authenticator
	Authorizer    authz.Mode
	// Encrypts reports whether objects below a prefix of the store are encrypted.
	Encrypts func(prefix string) bool
	// Roles evaluates the stored roles and bindings, even if another mode authorizes.
	Roles *rbac.Evaluator
	// Flow shares the server's seats among requests; nil if priority and fairness is off.
	Flow *flow.Controller
	// Admission is the user's configuration of admission plugins, AdmissionMetrics are their metrics, and
	// ManifestMetrics the metrics about their folders of manifests, nil without a folder.
	Admission        configuration.Configuration
	AdmissionMetrics *admit.Metrics
	ManifestMetrics  *manifest.Metrics

	// Not for Handlers and Plugin.New.

	Verbs *verb.Verbs
	// Working returns nil if some server runs the controllers that replicas elect one server for, and else the reason.
	Working func(ctx context.Context) error
	// Schema returns the published schema of a kind, with references resolved.
	Schema func(r *catalog.Resource, v *catalog.Version) (*spec.Schema, error)

	// Background runs a function until the server stops. An error that it returns before that stops the server.
	Background func(func(context.Context) error)
	// OnStop has a function called when the server stops, in the opposite order.
	OnStop func(func() error)
}
