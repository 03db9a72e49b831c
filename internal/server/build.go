package server

import (
	"context"
	"fmt"

	"github.com/bowsprit/bowsprit/internal/rest"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/api/openapi"
	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/kubelet"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/presence"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/front/audit"
	"github.com/bowsprit/bowsprit/internal/front/figures"
	"github.com/bowsprit/bowsprit/internal/front/flow"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/rest/weigh"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/version"
	"github.com/bowsprit/bowsprit/internal/storage/encrypt"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// built is the result of the second phase: the core and its parts. They hold no objects yet.
type built struct {
	*opened
	encryption *encrypt.Encryption // nil without encryption
	handlers   part.Handlers
	admission  admit.Chain
	documents  *openapi.Handler
	auditor    *audit.Auditor    // nil without auditing
	libraries  figures.Libraries // metrics of the libraries in use
	control    *control.Controllers
	front      *front.Server
}

// build is the second phase. It reads configuration files, and starts no work on objects.
func (o *opened) build(ctx context.Context) (*built, error) {
	b := &built{opened: o, libraries: kubelet.Metrics()}
	return b, inOrder(ctx,
		b.buildCatalog,
		b.buildAuth,
		b.buildFlow,
		b.buildHandlers,
		b.buildAdmission,
		b.buildVerbs,
		b.buildDocuments,
		b.buildControllers,
		b.buildAudit,
		b.buildFront,
	)
}

// buildCatalog makes the catalog of served kinds, and the view of their objects.
func (b *built) buildCatalog(context.Context) error {
	h := &b.host
	cel.KeepCompatible(config.Emulated(&b.config.Emulation).MinCompatibility)
	var resources []*catalog.Resource
	for _, one := range b.parts {
		if one.Resources != nil {
			resources = one.Resources(h, resources)
		}
	}
	h.Catalog = catalog.New(resources...)
	b.requests.Follow(h.Catalog)
	kind := convert.StoredKind(resources)
	if err := b.openEncryption(kind, kinds.EncryptedAsSecrets(resources)); err != nil {
		return err
	}
	h.Storing = convert.NewStoring(append(presence.Stored(resources), resources...), convert.StoringOptions{
		Media: b.config.Etcd.StorageMediaType, CBOR: b.config.API.CBOR, Readable: kinds.Readable,
	})
	h.View = watchcache.New(h.Store, watchcache.Options{
		Log: b.log, Pack: []string{control.DefinitionsPrefix},
		Alike: cluster.Alike(b.config.Workloads.Simulation != nil),
		Read:  h.Storing.Decode, Decrypt: b.decrypt(),
		Foreign: func(prefix string) bool { _, ok := kind(prefix); return !ok },
	})
	control.Publish(h.Catalog, h.View, b.log)
	certificates := webhook.NewCertificates("apiserver_webhooks")
	h.Metrics.MustRegister(certificates)
	resolver := webhook.Resolver{Catalog: h.Catalog, View: h.View}
	options := webhook.Options{
		Resolve: resolver.Resolve, Certificates: certificates, Egress: h.Egress, Log: b.log,
	}
	if h.Egress.Tunnelled(egress.Cluster) && !*b.config.Aggregation.Routing {
		// The tunnel ends in a network with cluster IPs, which balance there as for pods.
		options.Resolve = resolver.ClusterAddress
	}
	if b.behind != nil {
		options.Resolve = b.behind.Resolve
	}
	h.Webhooks = webhook.New(options)
	b.onStop(func() error { h.Webhooks.Close(); return nil })
	return nil
}

// buildAuth makes the authenticator and the authorizer.
func (b *built) buildAuth(context.Context) error {
	c, h := &b.config, &b.host
	tokens := serviceaccount.Config{
		Keys: b.keys, View: h.View, Issuers: c.ServiceAccounts.Issuers, Audiences: c.ServiceAccounts.Audiences,
		Used: func(ctx context.Context, secret *watchcache.Entry, day string) {
			if used := b.handlers.TokenUsed; used != nil {
				used(ctx, secret, day)
			}
		},
	}
	if config.Emulated(&c.Emulation).Has(serviceaccount.WebhookTokens, c.API.Features) {
		tokens.ValidatingWebhooks = ref.ValidatingWebhookConfigurations.Prefix
		tokens.MutatingWebhooks = ref.MutatingWebhookConfigurations.Prefix
	}
	h.Tokens = serviceaccount.New(tokens)
	var err error
	if b.behind != nil {
		if h.Authenticator, err = b.behind.Authenticator(h); err == nil {
			h.Authorizer, err = b.behind.Authorizer(h)
		}
		return err
	}
	if h.Authenticator, err = b.authenticator(); err != nil {
		return err
	}
	h.Roles = rbac.New(b.log)
	h.Roles.Follow(h.View)
	if h.Authorizer, err = b.openModes(); err != nil {
		return err
	}
	return nil
}

// buildFlow makes the scheduler that shares the server's seats out among requests. A part configures it later.
func (b *built) buildFlow(context.Context) error {
	c, h := &b.config, &b.host
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
func (b *built) buildHandlers(context.Context) error {
	for _, one := range b.parts {
		if one.Handlers == nil {
			continue
		}
		if taken := b.handlers.Merge(one.Handlers(&b.host)); len(taken) > 0 {
			return fmt.Errorf("part %s has handlers that another part has too: %v", one.Name, taken)
		}
	}
	return nil
}

// buildVerbs makes the verbs, which read and write objects.
func (b *built) buildVerbs(context.Context) error {
	c, h := &b.config, &b.host
	h.Verbs = verb.New(verb.Config{
		Catalog: h.Catalog, View: h.View, Store: h.Store, Admit: b.admission, Convert: b.conversion(),
		Answers: b.handlers.Answers, Actions: b.handlers.Actions, Finders: b.handlers.Finders,
		Allocators: b.handlers.Allocators, Updated: b.handlers.Updated, Guards: b.handlers.Guards,
		CustomGuards: b.handlers.CustomGuards, Limits: b.handlers.Limits, Protections: b.handlers.Protections,
		Primaries: b.handlers.Primaries, Authorizer: h.Authorizer,
		Now: h.Now, NewUID: h.NewUID, NewSuffix: part.NameSuffix, Log: b.log,
		Storing: h.Storing, Cipher: b.cipher(), UnsafeDeletion: c.API.UnsafeMalformedObjectDeletion,
		Sharded: config.Emulated(&c.Emulation).Has(kinds.ShardedListAndWatch, c.API.Features),
	})
	return nil
}

// conversion returns the converter between versions, which uses webhooks or functions of the embedding program.
func (b *built) conversion() *convert.Converter {
	functions := make(map[schema.GroupKind]convert.Function, len(b.config.Versions.Conversions))
	for kind, f := range b.config.Versions.Conversions {
		functions[kind] = f
	}
	return convert.New(convert.Options{
		Call: b.host.Webhooks.CallConversion, Functions: functions, Log: b.log, Metrics: b.host.Metrics,
	})
}

// buildDocuments makes the documents that publish the catalog.
func (b *built) buildDocuments(context.Context) error {
	shown := version.Emulated(config.Emulated(&b.config.Emulation))
	b.documents = openapi.New(openapi.Options{Version: shown.Version, WriteError: writeError})
	b.host.Schema = b.documents.Schema
	return nil
}
