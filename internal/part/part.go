// Package part says what an optional piece of the server may bring.
//
// The core serves definitions and their objects, and runs without any part. A Part is data: what it brings, as
// functions that the composition root calls, each at its time, with a Host, which is what the core offers. The root
// has one ordered list of parts, and a part that is not in the list is not started, allocates nothing and is not on
// the path of a request.
//
// Host is written by the composition root while the server starts, one field after the other, and read only afterwards.
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
	"github.com/bowsprit/bowsprit/internal/verb/keeper"
)

// Part is an optional piece of the server. Whatever it does not bring is nil.
type Part struct {
	// Name tells parts apart, in errors and in docs.
	Name string
	// Resources returns the built-in resources with those that the part adds or changes. It is called before there is a
	// catalog; the part may keep what it needs of them.
	Resources func(h *Host, resources []*catalog.Resource) []*catalog.Resource
	// Handlers are what the verbs ask about kinds that have something of their own. Host.Verbs is set later.
	Handlers func(h *Host) Handlers
	// Loops are controllers. Their names are known without a server, for the same reason.
	Loops []Loop
	// Admission are plugins of the admission chain. Their names are known without a server, so that a configuration
	// that switches one off can be checked.
	Admission []Plugin
	// Collectors are metrics that are collected when they are scraped.
	Collectors func(h *Host) []prometheus.Collector
	// Pages are paths that are about no resource. One that ends in a slash answers for everything below it too.
	Pages func(h *Host) map[string]front.Handler
	// Elsewhere returns what says who answers a request for which another server is there, nil for all others. It is
	// asked about each request.
	Elsewhere func(h *Host) front.Elsewhere
	// Peers returns what servers that share the etcd serve. One part at most has it.
	Peers func(h *Host) *discovery.Peers
	// Contents returns what deletes what other servers have in a namespace. One part at most has it.
	Contents func(h *Host) func(ctx context.Context, namespace string) control.Elsewhere
	// Remote returns the other servers, for controllers. One part at most has it.
	Remote func(h *Host) control.Remote
	// Checks are conditions of health.
	Checks func(h *Host) []front.Check
	// Start is called once the view is loaded, before controllers run and before the first request. An error ends the
	// start. What is to run as long as the server does goes to Host.Background.
	Start func(ctx context.Context, h *Host) error
	// Keep is called every 10 seconds, to make again what Start has made and a client has deleted, or what admission
	// has refused. It writes nothing, and asks etcd nothing, as long as everything is there.
	Keep func(ctx context.Context, h *Host) error
}

// Handlers are asked by the verbs. Each map may be nil; its keys are names such as "services", "serviceaccounts/token"
// or "tokenreviews.authentication.k8s.io".
type Handlers struct {
	// Answers are those of virtual resources, which store nothing.
	Answers map[string]verb.Answer
	// Actions are what a POST to a subresource does that takes an object of another kind.
	Actions map[string]verb.Action
	// Connections are those to what stands for objects.
	Connections map[string]rest.Connection
	// Finders find the objects of virtual resources that can be read.
	Finders map[string]verb.Finder
	// Allocators give objects what no other object may have.
	Allocators map[string]verb.Allocator
	// Guards decide whether the user of a write may give an object what it says.
	Guards map[string]verb.Guard
	// Limits say what of an object the user of an update may not change.
	Limits map[string]verb.Limit
	// Keepers keep the objects of kinds somewhere else than in the log, by the kind's prefix in the store.
	Keepers map[string]keeper.Keeper
	// Updated are told of each update that has been written.
	Updated map[string]func(old, now object.Object)
	// TokenUsed notes that the token of a secret was used on a day, "2006-01-02", UTC. It hears of each once a day.
	TokenUsed func(ctx context.Context, secret *watchcache.Entry, day string)
}

// Position is where in the admission chain a plugin is asked. Plugins of one position are asked in the order of the
// parts.
type Position int

// The positions, in kube's order.
const (
	// AtFirst is before any other: whether there may be objects at all.
	AtFirst Position = iota
	// AboutKinds is where plugins about single kinds are.
	AboutKinds
	// Mutating is where the policies and webhooks are that change objects.
	Mutating
	// Validating is where the policies and webhooks are that validate objects.
	Validating
	// AtLast is after all others, for what must not be done for a write that is refused.
	AtLast
	positions
)

// Plugin is a plugin of the admission chain that the server makes when it starts, unless it is switched off.
type Plugin struct {
	// Name is kube's name, as --disable-admission-plugins spells it. It is that of the plugin that New makes.
	Name string
	At   Position
	// New makes the plugin, nil if there is nothing for it to do. An error is about its configuration.
	New func(h *Host) (admit.Plugin, error)
}

// Loop is a controller, made when the server starts.
type Loop struct {
	// Name is kube's name, as --controllers spells it.
	Name string
	// Always is true for what Kubernetes has in kube-apiserver: --controllers does not switch it off.
	Always bool
	// Workers is how many keys it works on at a time.
	Workers int
	// Pooled bounds how many keys it and all other pooled loops work on at a time together, for loops of which many
	// can be busy at once.
	Pooled bool
	// Election is the Lease that replicas compete for before the loop works; nil for that of most controllers.
	Election *control.Election
	// New makes what works. It is called before the view loads. Nil is no loop.
	New func(h *Host) control.Reconciler
}

// Chain returns the plugins of all parts in the order in which they are asked.
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

// Merge puts the handlers of h into all. A name that is taken belongs to two parts, which is a mistake in the list of
// parts.
func (all *Handlers) Merge(h Handlers) (taken []string) {
	merge(&all.Answers, h.Answers, &taken)
	merge(&all.Actions, h.Actions, &taken)
	merge(&all.Connections, h.Connections, &taken)
	merge(&all.Finders, h.Finders, &taken)
	merge(&all.Allocators, h.Allocators, &taken)
	merge(&all.Guards, h.Guards, &taken)
	merge(&all.Limits, h.Limits, &taken)
	merge(&all.Updated, h.Updated, &taken)
	merge(&all.Keepers, h.Keepers, &taken)
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
