// Package storageversion has servers that share an etcd say in which versions they write and read each resource
// (KEP-2339), and takes out what servers have said that are gone. It is kube's feature gate StorageVersionAPI, off by
// default.
//
// It is a part. Before the server takes its first request it writes its entry into the StorageVersion of each built-in
// resource (records.run); a resource whose entry could not be written takes no writes until it could (barrier). Entries
// for the resources of definitions follow what the catalog serves. Another loop, of the server that leads, removes
// entries whose server has no Lease any more (collector).
//
// Rules: pkg/storageversion and pkg/endpoints/filters of k8s.io/apiserver 0.36, and kube-controller-manager's
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
	// Gate is the feature gate without which the part does nothing.
	Gate = "StorageVersionAPI"
	// Controller is kube's name for the loop that removes entries.
	Controller = "storageversion-garbage-collector-controller"
	// Check is the condition of health that is bad until all entries are written: kube's post-start hook.
	Check = "poststarthook/built-in-resources-storage-version-updater"
)

var resource = ref.StorageVersions.GroupResource()

// Part brings the entries and the loop. name returns the name of this server's Lease; on is false if the feature gate
// is off, and then the part has the name of its loop and nothing else.
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
