package bowsprit

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/configuration"
	"github.com/bowsprit/bowsprit/internal/admit/hook"
	"github.com/bowsprit/bowsprit/internal/admit/policy"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/api/discovery"
	"github.com/bowsprit/bowsprit/internal/api/openapi"
	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/kinds/auth/review"
	"github.com/bowsprit/bowsprit/internal/kinds/certificates/csrmetrics"
	"github.com/bowsprit/bowsprit/internal/kinds/core/componentstatus"
	"github.com/bowsprit/bowsprit/internal/kinds/core/quota"
	"github.com/bowsprit/bowsprit/internal/kinds/network/address"
	"github.com/bowsprit/bowsprit/internal/kinds/plugin"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/storage/storagemetrics"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// buildAPI connects the parts that answer requests.
func (p *process) buildAPI(context.Context) error {
	started := time.Now()
	resources := kinds.Resources()
	if p.config.EventTTL != 0 {
		kinds.KeepEvents(resources, max(p.config.EventTTL, 0))
	}
	if p.config.CoordinatedLeaderElection {
		kinds.CoordinateLeases(resources)
	}
	address.Install(resources, p.config.serviceRanges())
	if absent := kinds.RuntimeConfig(p.config.RuntimeConfig).Apply(resources); len(absent) > 0 {
		p.log.Warn("--runtime-config asks for what is not here", "versions", absent)
	}
	p.catalog = catalog.New(resources...)
	p.view = watchcache.New(p.store,
		watchcache.Options{Log: p.log, Pack: []string{control.DefinitionsPrefix}, Read: rest.Reader(resources)})
	control.Publish(p.catalog, p.view, p.log)
	p.webhooks = webhook.New(webhook.Options{
		Resolve: webhook.Resolver{Catalog: p.catalog, View: p.view}.Resolve, Log: p.log,
	})
	p.onStop(func() error { p.webhooks.Close(); return nil })
	p.metrics = prometheus.NewRegistry()
	p.metrics.MustRegister(storagemetrics.Census{Catalog: p.catalog, View: p.view, Size: p.store.Size})
	tokens := serviceaccount.New(serviceaccount.Config{
		Keys: p.keys, View: p.view, Issuers: p.config.ServiceAccountIssuers, Audiences: p.config.APIAudiences,
		Used: func(ctx context.Context, secret *watchcache.Entry, day string) {
			control.NoteTokenUse(ctx, p.rest, secret, day)
		},
	})
	who := authn.Config{
		ClientRoots: p.pki.ClientRoots, Bearer: tokens, Audiences: tokens.Audiences(),
		NoAnonymous: p.config.NoAnonymous || p.config.AlwaysAllow,
	}
	if p.config.TokenAuthFile != "" {
		tokens, err := authn.LoadTokens(p.config.TokenAuthFile, p.log)
		if err != nil {
			return fmt.Errorf("%w: correct it, or --token-auth-file", err)
		}
		who.Tokens = tokens
	}
	authenticator := authn.New(who)
	var authorizer authorizer = authz.Basic{}
	if p.config.AlwaysAllow {
		authorizer = authz.AlwaysAllow{}
	}
	quotas := &quota.Plugin{View: p.view, Update: p.updateQuota, Now: time.Now}
	admission, err := p.admission(authorizer, quotas)
	if err != nil {
		return fmt.Errorf("--admission-control-config-file: %w", err)
	}
	p.rest = rest.New(rest.Config{
		Catalog: p.catalog, View: p.view, Store: p.store,
		Admit:   admission,
		Convert: p.conversion(),
		Answers: review.Answers(review.Config{
			Token: authenticator.Token, Authorizer: authorizer, Ruler: authorizer, Tokens: tokens, View: p.view,
			Now: time.Now, NewUID: uuid.NewString, MaxTokenLife: p.config.ServiceAccountMaxTokenExpiration,
		}),
		Finders: map[string]rest.Finder{
			"componentstatuses": componentstatus.Find(componentstatus.Config{Store: p.store.Check}),
		},
		Allocators: map[string]rest.Allocator{"services": address.New(address.Config{
			View: p.view, Ranges: p.config.serviceRanges(), NodePorts: p.config.nodePorts(), Random: mathrand.Uint64N,
		})},
		Updated: map[string]func(old, now rest.Object){
			"certificatesigningrequests.certificates.k8s.io/status": csrmetrics.New(p.metrics).Updated,
		},
		Now: time.Now, NewUID: uuid.NewString, NewSuffix: nameSuffix, Log: p.log,
		StoreCBOR: p.config.CBOR, WatchAtLeast: p.config.MinRequestTimeout,
	})
	discover := discovery.New(discovery.Options{ServerAddress: reachable(p.listener.Addr()), WriteError: writeError})
	documents := openapi.New(openapi.Options{Version: front.API, WriteError: writeError})
	p.dropDocuments = documents.Drop
	p.control = control.New(control.Config{
		Rest: p.rest, View: p.view, Catalog: p.catalog,
		Tokens: tokens, Pending: quotas.Pending, ServerCA: p.pki.ServerCA, Now: time.Now, Log: p.log,
		Enabled:  p.config.Controllers,
		Identity: p.identity(), Coordination: p.coordination(), MigrateStorage: p.config.MigrateStorage,
		Schema: documents.Schema,
	})
	keysURI := p.config.ServiceAccountJWKSURI
	if keysURI == "" {
		keysURI = "https://" + reachable(p.listener.Addr()) + serviceaccount.KeysPath
	}
	origins, err := parseOrigins(p.config.CORSAllowedOrigins)
	if err != nil {
		return err
	}
	p.front = front.New(front.Config{
		Metrics:       p.metrics,
		Started:       started,
		Authenticator: authenticator,
		Authorizer:    authorizer,
		Resources:     p.rest.ServeHTTP,
		Discovery:     p.fresh(discover.ServeHTTP),
		OpenAPI:       p.fresh(documents.ServeHTTP),
		Checks: []front.Check{
			{Name: "etcd", Run: p.store.Check},
			{Name: "etcd-room", Run: p.store.CheckRoom, ReadyOnly: true},
			{
				Name: "view", Run: func(ctx context.Context) error { _, err := p.view.Fresh(ctx); return err },
				ReadyOnly: true,
			},
		},
		APIPaths: func() []string { return discovery.Paths(p.catalog.Snapshot()) },
		Paths:    p.pages(started, tokens, keysURI),
		Version:  front.VersionInfo(build()),
		TLS:      p.pki.TLSConfig(),
		CBOR:     p.config.CBOR,

		AllowedOrigins: origins, RequestTimeout: p.config.RequestTimeout,
		MaxRequestsInFlight: p.config.MaxRequestsInFlight, MaxMutationsInFlight: p.config.MaxMutatingRequestsInFlight,

		StrictTransportSecurity: p.config.StrictTransportSecurity,
		Served: func(info *request.Info) bool {
			r, v := p.catalog.Snapshot().Served(info.Group, info.Version, info.Resource)
			return r != nil &&
				(info.Subresource == "" || info.Subresource == "scale" && v.Scale != nil ||
					r.HasSubresource(v, info.Subresource))
		},
		Log: p.log,
	})
	return nil
}

// authorizer decides about requests, and lists what it would allow.
type authorizer interface {
	authz.Authorizer
	authz.Ruler
}

// identity names this replica in the election of the one whose controllers work, as kube's components name themselves.
// An embedded etcd has no other replica.
func (p *process) identity() string {
	if len(p.config.EtcdServers) == 0 {
		return ""
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "_" + uuid.NewString()
}

// coordination is how this replica comes to elect leaders, nil if it never does.
func (p *process) coordination() *control.Coordination {
	if !p.config.CoordinatedLeaderElection {
		return nil
	}
	if r := p.catalog.Snapshot().Resource("coordination.k8s.io", "leasecandidates"); !r.Served {
		p.log.Warn(
			"nobody can be a candidate: CoordinatedLeaderElection needs --runtime-config=coordination.k8s.io/v1beta1=true")
		return nil
	}
	c := p.config.coordination()
	return &c
}

// conversion is what converts between versions: by webhook, or by functions of the program that embeds the server.
func (p *process) conversion() *convert.Converter {
	functions := make(map[schema.GroupKind]convert.Function, len(p.config.Conversions))
	for kind, f := range p.config.Conversions {
		functions[kind] = f
	}
	return convert.New(convert.Options{Call: p.webhooks.Call, Functions: functions, Metrics: p.metrics})
}

// accountPatience is how long a pod waits for the service account that a controller of this process, or of another
// replica, is about to make.
const accountPatience = 10 * time.Second

// admission is the chain of plugins in kube's order, without those that are switched off. Errors are about their
// configuration.
func (p *process) admission(authorizer authz.Authorizer, quotas *quota.Plugin) (admit.Chain, error) {
	config, mutating, validating, err := p.admissionConfig()
	if err != nil {
		return admit.Chain{}, err
	}
	quotas.Limited = config.Limited
	metrics := admit.NewMetrics(p.metrics)
	policies := policy.Config{
		View: p.view, Catalog: p.catalog, Authz: authorizer, Log: p.log, Metrics: metrics,
		Read: func(ctx context.Context, r *catalog.Resource, v *catalog.Version, e *watchcache.Entry) (map[string]any,
			error) {
			return p.rest.Read(ctx, r, v, e)
		},
	}
	hooks := func(who *webhook.Credentials) hook.Config {
		return hook.Config{
			View: p.view, Authz: authorizer, Client: p.webhooks, Credentials: who, NewUID: uuid.NewString, Log: p.log,
			Metrics: metrics,
		}
	}
	plugins := plugin.Config{
		View: p.view, Authz: authorizer, NewSuffix: nameSuffix,
		PodSecurity: config.PodSecurity, NotReadySeconds: p.config.NotReadyTolerationSeconds,
		UnreachableSeconds: p.config.UnreachableTolerationSeconds,
	}
	if (control.Config{Enabled: p.config.Controllers}).Runs(control.ServiceAccount) {
		plugins.AccountPatience = accountPatience
	}
	chain := []admit.Plugin{admit.Lifecycle{View: p.view}}
	chain = append(chain, plugin.All(plugins)...)
	chain = append(chain, admit.Topology{View: p.view})
	for _, own := range p.config.AdmissionPlugins {
		chain = append(chain, embedded{own})
	}
	chain = append(chain,
		policy.NewMutating(policies), hook.NewMutating(hooks(mutating)),
		policy.NewValidating(policies), hook.NewValidating(hooks(validating)), quotas)
	return admit.Chain{Metrics: metrics, Plugins: slices.DeleteFunc(chain, func(plugin admit.Plugin) bool {
		return slices.Contains(p.config.DisableAdmissionPlugins, plugin.Name())
	})}, nil
}

// admissionConfig is what the user's file says about plugins, with the credentials for webhooks of either kind.
func (p *process) admissionConfig() (c configuration.Configuration, mutating, validating *webhook.Credentials,
	err error) {
	if p.config.AdmissionConfigFile == "" {
		return c, nil, nil, nil
	}
	if c, err = configuration.Read(p.config.AdmissionConfigFile); err != nil {
		return c, nil, nil, err
	}
	if len(c.Unused) > 0 {
		p.log.Warn("--admission-control-config-file configures what cannot be configured here", "plugins", c.Unused)
	}
	for _, l := range c.Limited {
		if !quota.Limits(l) {
			p.log.Warn("--admission-control-config-file limits what quotas do not count here: nobody is refused",
				"resource", l.Resource, "matchContains", l.MatchContains, "matchScopes", l.MatchScopes)
		}
	}
	read := func(file string) (*webhook.Credentials, error) {
		if file == "" {
			return nil, nil
		}
		return webhook.ReadCredentials(file)
	}
	if mutating, err = read(c.MutatingKubeconfig); err == nil {
		validating, err = read(c.ValidatingKubeconfig)
	}
	return c, mutating, validating, err
}

// updateQuota changes the status of a ResourceQuota by compare-and-swap.
func (p *process) updateQuota(ctx context.Context, namespace, name string, change func(map[string]any) error) error {
	who := &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}}
	call, err := p.rest.Call(catalog.GroupResource{Resource: "resourcequotas"}, namespace, name, who)
	if err != nil {
		return err
	}
	call.Subresource = "status"
	_, err = p.rest.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-apiserver"},
		func(obj rest.Object) (rest.Object, error) {
			return obj, change(obj)
		})
	if apierrors.IsNotFound(err) {
		return nil // it limits nothing any more
	}
	return err
}

func writeError(w http.ResponseWriter, r *http.Request, err error) { codec.WriteError(w, r, err) }

// fresh answers from a catalog that knows every definition that was acknowledged before the request.
func (p *process) fresh(serve func(http.ResponseWriter, *http.Request, *catalog.Snapshot)) front.Handler {
	return func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		if _, err := p.view.Fresh(r.Context()); err != nil {
			writeError(w, r, err)
			return
		}
		serve(w, r, p.catalog.Snapshot())
	}
}

// suffixLetters are those of kube's generated names: no vowels and no digits that look like letters, so that no words
// come out.
const suffixLetters = "bcdfghjklmnpqrstvwxz2456789"

// nameSuffix returns five random letters.
func nameSuffix() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = suffixLetters[int(b[i])%len(suffixLetters)]
	}
	return string(b[:])
}
