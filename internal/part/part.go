// Package part defines the optional pieces of the server.
//
// The core serves definitions and their objects, and runs without any part. A Part is data: functions that the
// composition root calls, each at its time, with a Host, the core's interface. The root has one ordered list of parts.
// A part that is not in the list is not started, allocates nothing and is not on the path of a request.
//
// The composition root sets the fields of Host one after the other while the server starts; later they are only read.
package part

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/discovery"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/primary"
)

// Part is an optional piece of the server. All functions may be nil.
type Part struct {
	// Name identifies the part, in errors and in docs.
	Name string
	// Resources returns the built-in resources with the additions and changes of the part. It is called before the
	// catalog exists; the part may keep references to resources.
	Resources func(h *Host, resources []*catalog.Resource) []*catalog.Resource
	// Handlers are called by the verbs for kinds with special behavior. Host.Verbs is set later.
	Handlers func(h *Host) Handlers
	// Loops are controllers. Their names are known without a server, for the same reason.
	Loops []Loop
	// Admission are plugins of the admission chain. Their names are known without a server, so that a configuration
	// that disables one can be validated.
	Admission []Plugin
	// Collectors are metrics that are computed when they are scraped.
	Collectors func(h *Host) []prometheus.Collector
	// Pages are non-resource paths. One that ends in a slash also covers everything below it.
	Pages func(h *Host) map[string]front.Handler
	// Elsewhere returns a function that returns the handler of a request that another server answers, and nil for all
	// other requests. It is called for each request.
	Elsewhere func(h *Host) front.Elsewhere
	// Peers returns the resources of servers that share the etcd. At most one part has it.
	Peers func(h *Host) *discovery.Peers
	// Contents returns the objects of other servers in namespaces. At most one part has it.
	Contents func(h *Host) control.Contents
	// Remote returns the other servers, for controllers. At most one part has it.
	Remote func(h *Host) control.Remote
	// Checks are health checks.
	Checks func(h *Host) []front.Check
	// Start is called once the view is loaded, before controllers run and before the first request. An error aborts the
	// start. Long-running work goes to Host.Background.
	Start func(ctx context.Context, h *Host) error
	// Keep is called every 10 seconds, to recreate objects of Start that a client has deleted or admission has
	// rejected. It neither writes nor accesses etcd while all objects exist.
	Keep func(ctx context.Context, h *Host) error
}

// Handlers are called by the verbs. Each map may be nil; its keys are names such as "services", "serviceaccounts/token"
// or "tokenreviews.authentication.k8s.io".
type Handlers struct {
	// Answers answer virtual resources, which store nothing.
	Answers map[string]verb.Answer
	// Actions perform a POST to a subresource with an object of another kind.
	Actions map[string]verb.Action
	// Connections connect clients to the processes behind objects.
	Connections map[string]rest.Connection
	// Finders find the objects of readable virtual resources.
	Finders map[string]verb.Finder
	// Allocators assign exclusive values to objects.
	Allocators map[string]verb.Allocator
	// Guards check whether the user of a write may grant the content of an object.
	Guards map[string]verb.Guard
	// CustomGuards check writes of custom objects, by names such as "portforwards.kwok.x-k8s.io".
	CustomGuards map[string]verb.Guard
	// Limits check which fields of an object the user of an update may change.
	Limits map[string]verb.Limit
	// Protections protect the objects of definitions from writes of the definition.
	Protections map[string]verb.Protection
	// Primaries store the objects of kinds outside of the log, by the kind's prefix in the store.
	Primaries map[string]primary.Store
	// Updated are called after each written update.
	Updated map[string]func(old, now object.Object)
	// TokenUsed records that the token of a secret was used on a day, "2006-01-02", UTC. It is called for each once a
	// day.
	TokenUsed func(ctx context.Context, secret *watchcache.Entry, day string)
}

// Position is the position of a plugin in the admission chain. Plugins of one position run in the order of the parts.
type Position int

// The positions, in kube's order.
const (
	// AtFirst is before all others: whether objects are possible at all.
	AtFirst Position = iota
	// AboutKinds is the position of plugins for single kinds.
	AboutKinds
	// Mutating is where the policies and webhooks are that change objects.
	Mutating
	// Validating is where the policies and webhooks are that validate objects.
	Validating
	// AtLast is after all others, for side effects that rejected writes must not have.
	AtLast
	positions
)

// Plugin is a plugin of the admission chain that the server creates at its start, unless it is disabled.
type Plugin struct {
	// Name is Kubernetes' name, as in --disable-admission-plugins, and the name of the plugin that New creates.
	Name string
	At   Position
	// New creates the plugin, nil if it has nothing to do. An error is about its configuration.
	New func(h *Host) (admit.Plugin, error)
}

// Loop is a controller, made when the server starts.
type Loop struct {
	// Name is kube's name, as --controllers spells it.
	Name string
	// Always is true for loops that Kubernetes runs in kube-apiserver: --controllers does not disable them.
	Always bool
	// Workers is the number of keys that it processes concurrently.
	Workers int
	// Pooled lets it share a pool with all other pooled loops, which bounds their total concurrency, for loops of which
	// many may be busy at once.
	Pooled bool
	// Election is the Lease that replicas compete for before the loop runs; nil means the Lease of most controllers.
	Election *control.Election
	// New creates the reconciler before the view loads. Nil disables the loop.
	New func(h *Host) control.Reconciler
}

// Chain returns the plugins of all parts in the order of the chain.
func Chain(parts []Part) []Plugin {
	var out []Plugin
	for at := range positions {
		for _, p := range parts {
			for _, plugin := range p.Admission {
				if plugin.At == at {
					out = append(out, plugin)
				}
			}
		}
	}
	return out
}

// Merge adds the handlers of h to all. taken are names that two parts use, which is a mistake in the list of parts.
func (all *Handlers) Merge(h Handlers) (taken []string) {
	merge(&all.Answers, h.Answers, &taken)
	merge(&all.Actions, h.Actions, &taken)
	merge(&all.Connections, h.Connections, &taken)
	merge(&all.Finders, h.Finders, &taken)
	merge(&all.Allocators, h.Allocators, &taken)
	merge(&all.Guards, h.Guards, &taken)
	merge(&all.CustomGuards, h.CustomGuards, &taken)
	merge(&all.Limits, h.Limits, &taken)
	merge(&all.Protections, h.Protections, &taken)
	merge(&all.Updated, h.Updated, &taken)
	merge(&all.Primaries, h.Primaries, &taken)
	switch {
	case all.TokenUsed == nil:
		all.TokenUsed = h.TokenUsed
	case h.TokenUsed != nil:
		taken = append(taken, "use of tokens")
	}
	return taken
}

func merge[V any](all *map[string]V, more map[string]V, taken *[]string) {
	for name, v := range more {
		if _, ok := (*all)[name]; ok {
			*taken = append(*taken, name)
			continue
		}
		if *all == nil {
			*all = map[string]V{}
		}
		(*all)[name] = v
	}
}
