package bowsprit

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/api/discovery"
	"github.com/bowsprit/bowsprit/internal/api/openapi"
	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// buildCatalog makes what is served, and what shows the objects of it.
func (p *process) buildCatalog(context.Context) error {
	h := &p.host
	var resources []*catalog.Resource
	for _, one := range p.parts {
		if one.Resources != nil {
			resources = one.Resources(h, resources)
		}
	}
	h.Catalog = catalog.New(resources...)
	h.View = watchcache.New(h.Store, watchcache.Options{
		Log: p.log, Pack: []string{control.DefinitionsPrefix}, Read: verb.StoredReader(resources),
	})
	control.Publish(h.Catalog, h.View, p.log)
	h.Webhooks = webhook.New(webhook.Options{
		Resolve: webhook.Resolver{Catalog: h.Catalog, View: h.View}.Resolve, Log: p.log,
	})
	p.onStop(func() error { h.Webhooks.Close(); return nil })
	return nil
}

// buildAuth makes what says who asks, and whether they may.
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
	who := authn.Config{
		ClientRoots: h.Certificates.ClientRoots, Bearer: h.Tokens, Audiences: h.Tokens.Audiences(),
		NoAnonymous: c.Auth.NoAnonymous || c.Auth.AlwaysAllow,
	}
	if c.Auth.TokenAuthFile != "" {
		tokens, err := authn.LoadTokens(c.Auth.TokenAuthFile, p.log)
		if err != nil {
			return fmt.Errorf("%w: correct it, or --token-auth-file", err)
		}
		who.Tokens = tokens
	}
	h.Authenticator = authn.New(who)
	h.Authorizer = authz.Basic{}
	if c.Auth.AlwaysAllow {
		h.Authorizer = authz.AlwaysAllow{}
	}
	return nil
}

// buildHandlers collects what the verbs ask parts.
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

// buildVerbs makes what reads and writes objects.
func (p *process) buildVerbs(context.Context) error {
	c, h := &p.config, &p.host
	h.Verbs = verb.New(verb.Config{
		Catalog: h.Catalog, View: h.View, Store: h.Store, Admit: p.admission, Convert: p.conversion(),
		Answers: p.handlers.Answers, Actions: p.handlers.Actions, Finders: p.handlers.Finders,
		Allocators: p.handlers.Allocators, Updated: p.handlers.Updated, Authorizer: h.Authorizer,
		Now: h.Now, NewUID: h.NewUID, NewSuffix: part.NameSuffix, Log: p.log,
		StoreCBOR: c.API.CBOR,
	})
	return nil
}

// buildDocuments makes what publishes the catalog.
func (p *process) buildDocuments(context.Context) error {
	p.documents = openapi.New(openapi.Options{Version: front.API, WriteError: writeError})
	p.host.Schema = p.documents.Schema
	return nil
}

// buildControllers has the controllers of the core and of parts listen to the view.
func (p *process) buildControllers(context.Context) error {
	c, h := &p.config, &p.host
	p.control = control.New(control.Config{
		Verbs: h.Verbs, View: h.View, Catalog: h.Catalog, Now: h.Now, Log: p.log,
		Enabled: c.Controllers.Enabled, Identity: p.identity(), MigrateStorage: c.Versions.MigrateStorage,
	})
	for _, one := range p.parts {
		for _, l := range one.Loops {
			if !l.Always && !c.Controllers.runs(l.Name) {
				continue
			}
			if work := l.New(h); work != nil {
				p.control.Add(control.Loop{Name: l.Name, Work: work, Workers: l.Workers, Election: l.Election})
			}
		}
	}
	return nil
}

// buildFront makes what takes requests in.
func (p *process) buildFront(context.Context) error {
	c, h := &p.config, &p.host
	origins, err := parseOrigins(c.HTTP.CORSAllowedOrigins)
	if err != nil {
		return err
	}
	pages := map[string]front.Handler{}
	for _, one := range p.parts {
		if one.Collectors != nil {
			h.Metrics.MustRegister(one.Collectors(h)...)
		}
		if one.Pages != nil {
			maps.Copy(pages, one.Pages(h))
		}
	}
	objects := rest.New(rest.Config{
		Verbs: h.Verbs, Connections: p.handlers.Connections, WatchAtLeast: c.Limits.MinRequestTimeout,
	})
	discover := discovery.New(discovery.Options{ServerAddress: reachable(p.listener.Addr()), WriteError: writeError})
	p.front = front.New(front.Config{
		Metrics: h.Metrics, Started: h.Started, Log: p.log,
		Authenticator: h.Authenticator, Authorizer: h.Authorizer,
		Resources: objects.ServeHTTP, Discovery: p.fresh(discover.ServeHTTP), OpenAPI: p.fresh(p.documents.ServeHTTP),
		Checks: p.checks(), Paths: pages, Served: p.served, LongRunning: p.longRunning,
		APIPaths: func() []string { return discovery.Paths(h.Catalog.Snapshot()) },
		Version:  front.VersionInfo(build()), TLS: h.Certificates.TLSConfig(), CBOR: c.API.CBOR,
		StrictTransportSecurity: c.HTTP.StrictTransportSecurity, AllowedOrigins: origins,
		RequestTimeout: c.Limits.RequestTimeout, MaxRequestsInFlight: c.Limits.MaxRequestsInFlight,
		MaxMutationsInFlight: c.Limits.MaxMutatingRequestsInFlight,
	})
	return nil
}

// checks are the conditions of health.
func (p *process) checks() []front.Check {
	h := &p.host
	return []front.Check{
		{Name: "etcd", Run: h.Store.Check},
		{Name: "etcd-room", Run: h.Store.CheckRoom, ReadyOnly: true},
		{
			Name: "view", Run: func(ctx context.Context) error { _, err := h.View.Fresh(ctx); return err },
			ReadyOnly: true,
		},
	}
}

// served reports whether a resource request names something that exists.
func (p *process) served(info *request.Info) bool {
	r, v := p.host.Catalog.Snapshot().Served(info.Group, info.Version, info.Resource)
	return r != nil &&
		(info.Subresource == "" || info.Subresource == "scale" && v.Scale != nil ||
			r.HasSubresource(v, info.Subresource))
}

// longRunning reports whether a request is for a subresource whose requests last as long as their clients want.
func (p *process) longRunning(info *request.Info) bool {
	r, _ := p.host.Catalog.Snapshot().Served(info.Group, info.Version, info.Resource)
	if r == nil {
		return false
	}
	sub := r.Subresource(info.Subresource)
	return sub != nil && sub.LongRunning
}

// identity names this replica in the election of the one whose controllers work, as kube's components name themselves.
// An embedded etcd has no other replica.
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

// conversion is what converts between versions: by webhook, or by functions of the program that embeds the server.
func (p *process) conversion() *convert.Converter {
	functions := make(map[schema.GroupKind]convert.Function, len(p.config.Versions.Conversions))
	for kind, f := range p.config.Versions.Conversions {
		functions[kind] = f
	}
	return convert.New(convert.Options{
		Call: p.host.Webhooks.Call, Functions: functions, Log: p.log, Metrics: p.host.Metrics,
	})
}

func writeError(w http.ResponseWriter, r *http.Request, err error) { codec.WriteError(w, r, err) }

// fresh answers from a catalog that knows every definition that was acknowledged before the request.
func (p *process) fresh(serve func(http.ResponseWriter, *http.Request, *catalog.Snapshot)) front.Handler {
	return func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		if _, err := p.host.View.Fresh(r.Context()); err != nil {
			writeError(w, r, err)
			return
		}
		serve(w, r, p.host.Catalog.Snapshot())
	}
}

// build says which Bowsprit this is.
func build() front.Build { return front.Build{Version: strings.TrimPrefix(Version().Bowsprit, "v")} }
