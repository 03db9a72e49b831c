package quota

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Part adds quotas: the plugin that enforces them, and the loop that maintains their status. If the latter is disabled
// in favor of kube-controller-manager's, another loop does the API server's part of it.
func Part() part.Part {
	var shared *ledger // of the plugin, which is created first; nil if it is disabled
	open := func(h *part.Host) *ledger {
		if shared == nil || shared.view != h.View {
			shared = newLedger(h.View, h.Catalog,
				func(r *catalog.Resource, e *watchcache.Entry) ([]byte, error) { return read(h, r, e) })
		}
		return shared
	}
	var counted *watchcache.View // of the server that runs the controller itself
	return part.Part{
		Name: "quotas",
		Admission: []part.Plugin{{
			Name: (*Plugin)(nil).Name(), At: part.AtLast, New: func(h *part.Host) (admit.Plugin, error) {
				return &Plugin{ledger: open(h), limited: h.Admission.Limited}, nil
			},
		}},
		Loops: []part.Loop{
			{Name: "resourcequota-controller", Workers: 5, New: func(h *part.Host) control.Reconciler {
				counted = h.View
				return newQuotas(h, open(h))
			}},
			{Name: "resourcequota-usage", Always: true, Workers: 5, New: func(h *part.Host) control.Reconciler {
				if counted == h.View || shared == nil || shared.view != h.View { // or the plugin is disabled
					return nil
				}
				return usage{newQuotas(h, shared)}
			}},
		},
	}
}

// read returns an entry's JSON in the storage version of its resource: an older server may have stored it in another.
func read(h *part.Host, r *catalog.Resource, e *watchcache.Entry) ([]byte, error) {
	if e.APIVersion == r.APIVersion(r.Storage) {
		return e.JSON(), nil
	}
	obj, err := h.Verbs.Read(context.Background(), r, r.Storage, e)
	if err != nil {
		return nil, err
	}
	return codec.AppendJSON(nil, obj), nil
}
