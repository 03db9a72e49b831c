package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/api/discovery"
	"github.com/bowsprit/bowsprit/internal/api/openapi"
	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/presence"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/front/chain"
	"github.com/bowsprit/bowsprit/internal/front/figures"
	"github.com/bowsprit/bowsprit/internal/front/flow"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/rest/weigh"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/reach"
	"github.com/bowsprit/bowsprit/internal/server/version"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// buildCatalog makes the catalog of served kinds, and the view of their objects.
func (p *process) buildCatalog(context.Context) error {
	h := &p.host
	cel.KeepCompatible(config.Emulated(&p.config.Emulation).MinCompatibility)
	var resources []*catalog.Resource
	for _, one := range p.parts {
		if one.Resources != nil {
			resources = one.Resources(h, resources)
		}
	}
	h.Catalog = catalog.New(resources...)
	p.requests.Follow(h.Catalog)
	kind := convert.StoredKind(resources)
	if err := p.openEncryption(kind, kinds.EncryptedAsSecrets(resources)); err != nil {
		return err
	}
	h.Storing = convert.NewStoring(append(presence.Stored(resources), resources...), convert.StoringOptions{
		Media: p.config.Etcd.StorageMediaType, CBOR: p.config.API.CBOR,
	})
	h.View = watchcache.New(h.Store, watchcache.Options{
		Log: p.log, Pack: []string{control.DefinitionsPrefix},
		Alike: cluster.Alike(p.config.Workloads.Simulation != nil),
		Read:  h.Storing.Decode, Decrypt: p.decrypt(),
		Foreign: func(prefix string) bool { _, ok := kind(prefix); return !ok },
	})
	control.Publish(h.Catalog, h.View, p.log)
	certificates := webhook.NewCertificates("apiserver_webhooks")
	h.Metrics.MustRegister(certificates)
	resolver := webhook.Resolver{Catalog: h.Catalog, View: h.View}
	options := webhook.Options{
		Resolve: resolver.Resolve, Certificates: certificates, Egress: h.Egress, Log: p.log,
	}
	if h.Egress.Tunnelled(egress.Cluster) && !*p.config.Aggregation.Routing {
		// The tunnel ends in a network with cluster IPs, which balance there as for pods.
		options.Resolve = resolver.ClusterAddress
	}
	if p.behind != nil {
		options.Resolve = p.behind.Resolve
	}
	h.Webhooks = webhook.New(options)
	p.onStop(func() error { h.Webhooks.Close(); return nil })
	return nil
}

// buildAuth makes the authenticator and the authorizer.
func (p *process) buildAuth(context.Context) error {
	c, h := &p.config, &p.host
	h.Tokens = serviceaccount.New(serviceaccount.Config{
		Keys: p.keys, View: h.View, Issuers: c.ServiceAccounts.Issuers, Audiences: c.ServiceAccounts.Audiences,
		Used: func(ctx context.Context, secret *watchcache.Entry, day string) {
			if used := p.handlers.TokenUsed; used != nil {
				used(ctx, secret, day)
			}
		},
	})
	var err error
	if p.behind != nil {
		if h.Authenticator, err = p.behind.Authenticator(h); err == nil {
			h.Authorizer, err = p.behind.Authorizer(h)
		}
		return err
	}
	if h.Authenticator, err = p.authenticator(); err != nil {
		return err
	}
	h.Roles = rbac.New(p.log)
	h.Roles.Follow(h.View)
	if h.Authorizer, err = p.openModes(); err != nil {
		return err
	}
	return nil
}

// buildFlow makes the scheduler that shares the server's seats out among requests. A part configures it later.
func (p *process) buildFlow(context.Context) error {
	c, h := &p.config, &p.host
	if !*c.Limits.PriorityAndFairness {
		return nil
	}
	h.Flow = flow.New(flow.Options{
		Total: config.Seats(&c.Limits), Patience: c.Limits.RequestTimeout / 4,
		Weigh: func(info *request.Info, query string) (int64, bool) {
			return weigh.Bytes(h.Verbs.Reader, info, query)
		},
		Narrow: func(info *request.Info) bool { return weigh.Narrow(h.Verbs.Reader, info) },
		Unseen: rest.Served{Catalog: h.Catalog}.Unseen,
	})
	return nil
}

// buildHandlers collects the handlers of parts for the verbs.
func (p *process) buildHandlers(context.Context) error {
	for _, one := range p.parts {
		if one.Handlers == nil {
			continue
		}
		if taken := p.handlers.Merge(one.Handlers(&p.host)); len(taken) > 0 {
			return fmt.Errorf("part %s has handlers that another part has too: %v", one.Name, taken)
		}
	}
	return nil
}

// buildVerbs makes the verbs, which read and write objects.
func (p *process) buildVerbs(context.Context) error {
	c, h := &p.config, &p.host
	h.Verbs = verb.New(verb.Config{
		Catalog: h.Catalog, View: h.View, Store: h.Store, Admit: p.admission, Convert: p.conversion(),
		Answers: p.handlers.Answers, Actions: p.handlers.Actions, Finders: p.handlers.Finders,
		Allocators: p.handlers.Allocators, Updated: p.handlers.Updated, Guards: p.handlers.Guards,
		Limits: p.handlers.Limits, Keepers: p.handlers.Keepers,
		Authorizer: h.Authorizer,
		Now:        h.Now, NewUID: h.NewUID, NewSuffix: part.NameSuffix, Log: p.log,
		Storing: h.Storing, Cipher: p.cipher(), UnsafeDeletion: c.API.UnsafeMalformedObjectDeletion,
		Sharded: config.Emulated(&c.Emulation).Has(kinds.ShardedListAndWatch, c.API.Features),
	})
	return nil
}

// buildDocuments makes the documents that publish the catalog.
func (p *process) buildDocuments(context.Context) error {
	shown := version.Emulated(config.Emulated(&p.config.Emulation))
	p.documents = openapi.New(openapi.Options{Version: shown.Version, WriteError: writeError})
	p.host.Schema = p.documents.Schema
	return nil
}

// buildControllers has the controllers of the core and of parts listen to the view.
func (p *process) buildControllers(context.Context) error {
	c, h := &p.config, &p.host
	p.control = control.New(control.Config{
		Verbs: h.Verbs, View: h.View, Catalog: h.Catalog, Now: h.Now, Log: p.log,
		Runs: h.Runs, Identity: p.identity(),
		MigrateStorage: c.Versions.MigrateStorage,
		Elsewhere:      p.contents(), Remote: p.remote(),
	})
	h.Working = p.control.Check
	for _, one := range p.parts {
		for _, l := range one.Loops {
			if !l.Always && !h.Runs(l.Name) {
				continue
			}
			if work := l.New(h); work != nil {
				p.control.Add(control.Loop{
					Name: l.Name, Work: work, Workers: l.Workers, Pooled: l.Pooled, Election: l.Election,
				})
			}
		}
	}
	return nil
}

// contents returns the function that deletes the contents of a namespace on other servers, or nil.
func (p *process) contents() func(context.Context, string) control.Elsewhere {
	for _, one := range p.parts {
		if one.Contents != nil {
			return one.Contents(&p.host)
		}
	}
	return nil
}

// remote returns the other servers, or nil.
func (p *process) remote() control.Remote {
	for _, one := range p.parts {
		if one.Remote != nil {
			return one.Remote(&p.host)
		}
	}
	return nil
}

// buildFront makes the front, which receives requests.
func (p *process) buildFront(context.Context) error {
	c, h := &p.config, &p.host
	origins, err := config.Origins(c.HTTP.CORSAllowedOrigins)
	if err != nil {
		return err
	}
	if len(p.libraries) > 0 {
		h.Metrics.MustRegister(p.libraries)
	}
	pages := map[string]front.Handler{}
	var elsewhere []front.Elsewhere
	var peers *discovery.Peers // of one part at most
	for _, one := range p.parts {
		if one.Elsewhere != nil {
			elsewhere = append(elsewhere, one.Elsewhere(h))
		}
		if one.Peers != nil {
			peers = one.Peers(h)
		}
		if one.Collectors != nil {
			h.Metrics.MustRegister(one.Collectors(h)...)
		}
		if one.Pages != nil {
			maps.Copy(pages, one.Pages(h))
		}
	}
	objects := rest.New(rest.Config{
		Verbs: h.Verbs, Connections: p.handlers.Connections, WatchAtLeast: c.Limits.MinRequestTimeout,
		Metrics: h.Metrics,
	})
	discover := discovery.New(discovery.Options{
		ServerAddress: reach.Local(p.listener.Addr()), WriteError: writeError, Peers: peers,
	})
	served := rest.Served{Catalog: h.Catalog}
	p.front = front.New(front.Config{
		Config: chain.Config{
			Metrics: h.Metrics, Log: p.log, Authenticator: h.Authenticator, Authorizer: h.Authorizer, Audit: p.auditor,
			Viewer: p.viewer(), Tracer: p.tracer(),
			Served: served.Has, LongRunning: served.LongRunning,
			Version:                 version.OfServer(config.Emulated(&c.Emulation)),
			StrictTransportSecurity: c.HTTP.StrictTransportSecurity, AllowedOrigins: origins,
			LegacyImpersonation: !*c.Authorization.ConstrainedImpersonation, Flow: h.Flow, Memory: p.ledger(),
			RequestTimeout: c.Limits.RequestTimeout, MaxRequestsInFlight: c.Limits.MaxRequestsInFlight,
			MaxMutationsInFlight: c.Limits.MaxMutatingRequestsInFlight,
		},
		Started: h.Started, Figures: figures.NewGatherer(h.Metrics, metricOptions(&c.Observability)),
		Elsewhere: front.FirstOf(elsewhere),
		Resources: objects.ServeHTTP, Discovery: p.fresh(discover.ServeHTTP), OpenAPI: p.fresh(p.documents.ServeHTTP),
		Checks: p.checks(), Paths: pages,
		APIPaths: func() []string { return discovery.Paths(h.Catalog.Snapshot()) },
		TLS:      h.Certificates.TLSConfig(), CBOR: c.API.CBOR,
	})
	return nil
}

// checks are the conditions of health.
func (p *process) checks() []front.Check {
	h := &p.host
	checks := append(p.encryptionChecks(), []front.Check{
		{Name: "etcd", Run: h.Store.Check},
		{Name: "etcd-room", Run: h.Store.CheckRoom, ReadyOnly: true},
		{
			Name: "view", Run: func(ctx context.Context) error { _, err := h.View.Fresh(ctx); return err },
			ReadyOnly: true,
		},
	}...)
	for _, one := range p.parts {
		if one.Checks != nil {
			checks = append(checks, one.Checks(h)...)
		}
	}
	return checks
}

// identity returns the name of this replica in the election for running controllers, in the form of Kubernetes'
// components. With an embedded etcd it is "", because there are no other replicas.
func (p *process) identity() string {
	if len(p.config.Etcd.Servers) == 0 {
		return ""
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "_" + uuid.NewString()
}

// conversion returns the converter between versions, which uses webhooks or functions of the embedding program.
func (p *process) conversion() *convert.Converter {
	functions := make(map[schema.GroupKind]convert.Function, len(p.config.Versions.Conversions))
	for kind, f := range p.config.Versions.Conversions {
		functions[kind] = f
	}
	return convert.New(convert.Options{
		Call: p.host.Webhooks.CallConversion, Functions: functions, Log: p.log, Metrics: p.host.Metrics,
	})
}

func writeError(w http.ResponseWriter, r *http.Request, err error) { codec.WriteError(w, r, err) }

// fresh serves from a catalog with every definition that was acknowledged before the request.
func (p *process) fresh(serve func(http.ResponseWriter, *http.Request, *catalog.Snapshot)) front.Handler {
	return func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		if _, err := p.host.View.Fresh(r.Context()); err != nil {
			writeError(w, r, err)
			return
		}
		serve(w, r, p.host.Catalog.Snapshot())
	}
}

// metricOptions returns the options of /metrics.
func metricOptions(c *config.Observability) figures.Options {
	allowed, _ := config.MetricLabels(c) // Validate has returned the error
	return figures.Options{
		Allow: allowed, Disabled: slices.Clone(c.DisabledMetrics), ShowHidden: c.ShowHiddenMetricsForVersion != "",
	}
}
