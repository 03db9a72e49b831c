package server

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/bowsprit/bowsprit/internal/rest"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/discovery"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/front/chain"
	"github.com/bowsprit/bowsprit/internal/front/figures"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/reach"
	"github.com/bowsprit/bowsprit/internal/server/version"
)

// buildFront makes the front, which receives requests.
func (b *built) buildFront(context.Context) error {
	c, h := &b.config, &b.host
	origins, err := config.Origins(c.HTTP.CORSAllowedOrigins)
	if err != nil {
		return err
	}
	if len(b.libraries) > 0 {
		h.Metrics.MustRegister(b.libraries)
	}
	pages := map[string]front.Handler{}
	var elsewhere []front.Elsewhere
	var peers *discovery.Peers // of one part at most
	for _, one := range b.parts {
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
		Verbs: h.Verbs, Connections: b.handlers.Connections, WatchAtLeast: c.Limits.MinRequestTimeout,
		Metrics: h.Metrics,
	})
	discover := discovery.New(discovery.Options{
		ServerAddress: reach.Local(b.listener.Addr()), WriteError: writeError, Peers: peers,
	})
	served := rest.Served{Catalog: h.Catalog}
	b.front = front.New(front.Config{
		Config: chain.Config{
			Metrics: h.Metrics, Log: b.log, Authenticator: h.Authenticator, Authorizer: h.Authorizer, Audit: b.auditor,
			Viewer: b.viewer(), Tracer: b.tracer(),
			Served: served.Has, LongRunning: served.LongRunning,
			Version:                 version.OfServer(config.Emulated(&c.Emulation)),
			StrictTransportSecurity: c.HTTP.StrictTransportSecurity, AllowedOrigins: origins,
			LegacyImpersonation: !*c.Authorization.ConstrainedImpersonation, Flow: h.Flow, Memory: b.ledger(),
			RequestTimeout: c.Limits.RequestTimeout, MaxRequestsInFlight: c.Limits.MaxRequestsInFlight,
			MaxMutationsInFlight: c.Limits.MaxMutatingRequestsInFlight,
		},
		Started: h.Started, Figures: figures.NewGatherer(h.Metrics, metricOptions(&c.Observability)),
		Elsewhere: front.FirstOf(elsewhere),
		Resources: objects.ServeHTTP, Discovery: b.fresh(discover.ServeHTTP), OpenAPI: b.fresh(b.documents.ServeHTTP),
		Checks: b.checks(), Paths: pages,
		APIPaths: func() []string { return discovery.Paths(h.Catalog.Snapshot()) },
		TLS:      h.Certificates.TLSConfig(), CBOR: c.API.CBOR,
		DirectHTTP2: c.HTTP.HTTP2Server == config.HTTP2Direct,
	})
	return nil
}

// checks are the conditions of health.
func (b *built) checks() []front.Check {
	h := &b.host
	checks := append(b.encryptionChecks(), []front.Check{
		{Name: "etcd", Run: h.Store.Check},
		{Name: "etcd-room", Run: h.Store.CheckRoom, ReadyOnly: true},
		{
			Name: "view", Run: func(ctx context.Context) error { _, err := h.View.Fresh(ctx); return err },
			ReadyOnly: true,
		},
	}...)
	for _, one := range b.parts {
		if one.Checks != nil {
			checks = append(checks, one.Checks(h)...)
		}
	}
	return checks
}

// fresh serves from a catalog with every definition that was acknowledged before the request.
func (b *built) fresh(serve func(http.ResponseWriter, *http.Request, *catalog.Snapshot)) front.Handler {
	return func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		if _, err := b.host.View.Fresh(r.Context()); err != nil {
			writeError(w, r, err)
			return
		}
		serve(w, r, b.host.Catalog.Snapshot())
	}
}

// metricOptions returns the options of /metrics.
func metricOptions(c *config.Observability) figures.Options {
	allowed, _ := config.MetricLabels(c) // Validate has returned the error
	return figures.Options{
		Allow: allowed, Disabled: slices.Clone(c.DisabledMetrics), ShowHidden: c.ShowHiddenMetricsForVersion != "",
	}
}

func writeError(w http.ResponseWriter, r *http.Request, err error) { codec.WriteError(w, r, err) }
