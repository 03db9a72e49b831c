// Package fairness manages the objects of API Priority and Fairness: it creates the default FlowSchemas and
// PriorityLevelConfigurations, configures the server from the stored ones, and writes into each FlowSchema whether its
// level exists.
//
// Package front/flow schedules the requests and knows nothing of stored objects. This package configures it in the
// view's goroutine, before the view shows the revision: a schema or level is in force on this replica when its write
// returns.
package fairness

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/front/flow"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// The kinds, and the prefixes of their keys.
const (
	schemas = "flowschemas"
	levels  = "prioritylevelconfigurations"
)

func resource(plural string) catalog.GroupResource {
	return catalog.GroupResource{Group: flowcontrolv1.GroupName, Resource: plural}
}

// Part adds the objects and their effect. It is for servers with Host.Flow: in others, FlowSchemas and
// PriorityLevelConfigurations are stored without effect.
func Part() part.Part {
	return part.Part{
		Name:      "priority and fairness",
		Resources: visible,
		Loops: []part.Loop{{
			Name: Controller, Always: true, Workers: 1, New: newConditions,
		}},
		Collectors: func(h *part.Host) []prometheus.Collector {
			return []prometheus.Collector{h.Flow}
		},
		Pages: pages,
		Start: func(ctx context.Context, h *part.Host) error {
			ctx, cancel := h.Starting(ctx)
			defer cancel()
			if err := ensure(ctx, h); err != nil {
				h.Log.Warn("an object of priority and fairness cannot be created; retried every 10 seconds", "error", err)
			}
			h.Background(func(ctx context.Context) error { return balance(ctx, h.Flow) })
			return nil
		},
		Keep: new(reconciler).keep,
	}
}

// Controller is the name of the loop.
const Controller = "priority-and-fairness-config-controller"

// visible makes a write of a schema or level return only when it is in force.
func visible(_ *part.Host, resources []*catalog.Resource) []*catalog.Resource {
	for _, r := range resources {
		if r.Group == flowcontrolv1.GroupName {
			strategy := *r.Strategy
			strategy.VisibleOnReturn = true
			r.Strategy = &strategy
		}
	}
	return resources
}

// balance lends seats between levels until ctx ends.
func balance(ctx context.Context, f *flow.Controller) error {
	tick := time.NewTicker(flow.BalanceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.Balance()
		case <-ctx.Done():
			return nil
		}
	}
}

func pages(h *part.Host) map[string]front.Handler {
	out := map[string]front.Handler{}
	for path, page := range h.Flow.Pages() {
		out[path] = func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) { page(w, r) }
	}
	return out
}

// configure configures the server from the objects in the view.
func configure(h *part.Host) {
	broken := h.Flow.Configure(all[flowcontrolv1.FlowSchema](h, schemas),
		all[flowcontrolv1.PriorityLevelConfiguration](h, levels))
	for name, err := range broken {
		h.Log.Warn("a PriorityLevelConfiguration contradicts itself; it has no effect until it is corrected", "name",
			name, "error", err)
	}
}

// all returns the objects of a kind. It skips unreadable ones, which were not written through the API.
func all[T any](h *part.Host, prefix string) (out []*T) {
	h.View.Collection(prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if obj := objectOf[T](e); obj != nil {
			out = append(out, obj)
		}
		return true
	})
	return out
}

// objectOf decodes an entry; it returns nil for a nil or unreadable one.
func objectOf[T any](e *watchcache.Entry) *T {
	if e == nil {
		return nil
	}
	obj := new(T)
	if json.Unmarshal(e.Peek(), obj) != nil {
		return nil
	}
	return obj
}

// concerns reports whether an event is about a schema or a level.
func concerns(ev *watchcache.Event) bool {
	prefix := ev.Collection.Prefix()
	return prefix == schemas || prefix == levels
}

// follow has every change of a configuration be in force before the view shows it.
func follow(h *part.Host) {
	h.View.Subscribe(func(events []*watchcache.Event) {
		if slices.ContainsFunc(events, concerns) {
			configure(h)
		}
	})
}

var _ control.Reconciler = (*conditions)(nil)
