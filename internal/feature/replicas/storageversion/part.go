// Package storageversion publishes the versions in which servers that share an etcd encode and decode each resource
// (KEP-2339), and removes the entries of terminated servers. It is Kubernetes' feature gate StorageVersionAPI, off by
// default.
//
// It is a part. Before its first request, the server writes its entry into the StorageVersion of each built-in resource
// (records.run); while the entry of a resource is pending, writes of the resource are rejected (barrier). Entries for
// resources of definitions follow the catalog. A loop on the leading server removes entries of servers without a Lease
// (collector).
//
// Source: pkg/storageversion and pkg/endpoints/filters of k8s.io/apiserver 0.36, and kube-controller-manager's
// storageversion-garbage-collector-controller.
package storageversion

import (
	"context"
	"net/http"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
)

const (
	// Gate is the feature gate of the part.
	Gate = "StorageVersionAPI"
	// Controller is Kubernetes' name for the loop that removes entries.
	Controller = "storageversion-garbage-collector-controller"
	// Check is the health check that fails until all entries are written, named after Kubernetes' post-start hook.
	Check = "poststarthook/built-in-resources-storage-version-updater"
)

var resource = ref.StorageVersions.GroupResource()

// Part adds the entries and the loop. name returns the name of this server's Lease. on is false if the feature gate is
// off; then the part only declares the name of its loop.
func Part(on bool, name func() (string, error)) part.Part {
	p := part.Part{Name: "storage versions", Loops: []part.Loop{{
		Name: Controller, Workers: 1, New: func(h *part.Host) control.Reconciler {
			if !on || !served(h) {
				return nil
			}
			return &collector{h}
		},
	}}}
	if !on {
		return p
	}
	var all *records // nil if StorageVersions are not served
	p.Handlers = func(h *part.Host) part.Handlers {
		if served(h) {
			all = newRecords(h)
		} else {
			h.Log.Warn("no StorageVersions are served: " + Gate +
				" needs --runtime-config=internal.apiserver.k8s.io/v1alpha1=true")
		}
		return part.Handlers{}
	}
	p.Elsewhere = func(*part.Host) front.Elsewhere {
		if all == nil {
			return func(*http.Request, *request.Info) front.Handler { return nil }
		}
		return all.barrier
	}
	p.Checks = func(*part.Host) []front.Check {
		if all == nil {
			return nil
		}
		return []front.Check{{Name: Check, Run: func(context.Context) error { return all.check() }}}
	}
	p.Start = func(ctx context.Context, h *part.Host) (err error) {
		if all == nil {
			return nil
		}
		if all.server, err = name(); err != nil {
			return err
		}
		all.first(ctx)
		h.Background(func(ctx context.Context) error { all.run(ctx); return nil })
		return nil
	}
	return p
}

func served(h *part.Host) bool {
	r := h.Catalog.Snapshot().Resource(resource.Group, resource.Resource)
	return r != nil && r.Served && r.Storage.Served
}
