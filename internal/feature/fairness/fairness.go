// Package fairness keeps API Priority and Fairness going: it makes the FlowSchemas and PriorityLevelConfigurations that
// every server has, has the server go by those that are there, and writes into each FlowSchema whether its level
// exists.
//
// What decides about requests is package front/flow, which knows nothing of stored objects. It learns of them here, in
// the view's goroutine, before the view shows their revision: a schema or a level is in force when the write that made
// it returns, on this replica.
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

// Part brings the objects, and what follows from them. It is for servers that have Host.Flow: in others FlowSchemas and
// PriorityLevelConfigurations are stored and mean nothing.
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
				h.Log.Warn("an object of priority and fairness cannot be made; tried again every 10 seconds", "error", err)
			}
			h.Background(func(ctx context.Context) error { return balance(ctx, h.Flow) })
			return nil
		},
		Keep: new(keeper).keep,
	}
}

// Controller is the name of the loop.
const Controller = "priority-and-fairness-config-controller"

// visible has a write of a schema or a level return when it is in force.
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

// configure has the server go by what is in the view.
func configure(h *part.Host) {
	broken := h.Flow.Configure(all[flowcontrolv1.FlowSchema](h, schemas),
		all[flowcontrolv1.PriorityLevelConfiguration](h, levels))
	for name, err := range broken {
		h.Log.Warn("a PriorityLevelConfiguration contradicts itself; it is not in force until it is changed", "name",
			name, "error", err)
	}
}

// all returns the objects of a kind. What cannot be decoded is left out: it was not written through the API.
func all[T any](h *part.Host, prefix string) (out []*T) {
	h.View.Collection(prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if obj := objectOf[T](e); obj != nil {
			out = append(out, obj)
		}
		return true
	})
	return out
}

// objectOf returns the object of an entry; nil if there is none, or it is none.
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

// concerns reports whether an event is about what the server goes by.
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
