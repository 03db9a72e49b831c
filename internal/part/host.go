package part

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/configuration"
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

// Host is what the core offers parts. Fields are set in the order in which they stand here; those below a comment that
// names a function of Part are nil when that function is called, and set when what it returns is used.
type Host struct {
	Log     *slog.Logger
	Started time.Time
	// Now is the clock, and NewUID makes uids: they are passed so that tests are exact.
	Now    func() time.Time
	NewUID func() string
	// AfterFunc calls a function in a goroutine of its own after a while by the clock; stop reports whether it has kept
	// it from being called.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// Runs reports whether a controller is switched on, by its name.
	Runs func(controller string) bool
	// URL is where the server is reached, such as "https://127.0.0.1:6443".
	URL string
	// Port is the server's own port, 0 if it listens on something that has none.
	Port int
	// Dir is the directory of what outlives the server, "" if nothing does.
	Dir          string
	Store        *store.Store
	Certificates *pki.PKI
	Metrics      *prometheus.Registry
	// Egress opens connections to other servers.
	Egress *egress.Egress

	// Not for Resources.

	Catalog *catalog.Catalog
	View    *watchcache.View
	// Storing encodes what is stored; nil is JSON.
	Storing       *convert.Storing
	Webhooks      *webhook.Client
	Tokens        *serviceaccount.Tokens
	Authenticator *authn.Authenticator
	Authorizer    authz.Mode
	// Encrypts reports whether what lies below a prefix of the store is encrypted.
	Encrypts func(prefix string) bool
	// Roles knows the roles and bindings that are there, whether they authorize or not.
	Roles *rbac.Evaluator
	// Flow shares the server's seats out among requests; nil if priority and fairness is off.
	Flow *flow.Controller
	// Admission is what the user's file says of admission plugins, and AdmissionMetrics is where they count.
	Admission        configuration.Configuration
	AdmissionMetrics *admit.Metrics

	// Not for Handlers and Plugin.New.

	Verbs *verb.Verbs
	// Working returns nil if the controllers that replicas elect one server for work somewhere, and else why not.
	Working func(ctx context.Context) error
	// Schema returns the published schema of a kind with no reference left in it.
	Schema func(r *catalog.Resource, v *catalog.Version) (*spec.Schema, error)

	// Background runs a function until the server stops. An error that it returns before that stops the server.
	Background func(func(context.Context) error)
	// OnStop has a function called when the server stops, in the opposite order.
	OnStop func(func() error)
}
