// Package aggregation implements APIServices: each names the server for a version of an API group, which is this server
// or another one behind a service.
//
// It is a part beside the core, and also adds the kind.
package aggregation

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/kinds/apiregistration"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Resource names the kind.
var Resource = ref.APIServices.GroupResource()

// Registration is the controller that maintains the APIServices of this server's own groups.
const Registration = "kube-apiserver-autoregistration-controller"

// Settings configure how requests reach other servers.
type Settings struct {
	// Routing sends requests to the endpoints of services, and not to cluster IPs.
	Routing bool
	// RejectRedirects answers 502 if another server redirects a client.
	RejectRedirects bool
}

// Part brings APIServices.
func Part(settings Settings) part.Part {
	var local *registration
	var remote *aggregator
	var elsewhere *contents
	return part.Part{
		Name: "API aggregation",
		Resources: func(_ *part.Host, resources []*catalog.Resource) []*catalog.Resource {
			return append(resources, apiregistration.Kinds()...)
		},
		Handlers: func(h *part.Host) part.Handlers {
			remote = newAggregator(h, settings)
			elsewhere = &contents{aggregator: remote, ledger: remote.leftovers.ledger}
			return part.Handlers{Guards: guards(h)}
		},
		Loops: []part.Loop{{Name: Registration, Always: true, Workers: 5, New: func(h *part.Host) control.Reconciler {
			local = newRegistration(h)
			return local
		}}, {Name: Leftovers, Always: true, Workers: 5, New: func(h *part.Host) control.Reconciler {
			if !h.Runs(control.Namespace) {
				return nil
			}
			return &cleaner{elsewhere}
		}}},
		Elsewhere: func(*part.Host) front.Elsewhere { return remote.elsewhere },
		Contents:  func(*part.Host) control.Contents { return elsewhere },
		Remote:    func(*part.Host) control.Remote { return remote },
		Collectors: func(*part.Host) []prometheus.Collector {
			return []prometheus.Collector{remote.metrics.unavailable, remote.metrics.total, remote.certificates,
				figures{remote.leftovers.ledger}}
		},
		Start: func(_ context.Context, h *part.Host) error {
			local.running.Store(true)
			h.Background(local.registerBuiltin)
			remote.restore()
			h.Background(remote.run)
			return nil
		},
		Checks: func(*part.Host) []front.Check {
			return []front.Check{{Name: "autoregister-completion", NotLive: true, Run: func(context.Context) error {
				if missing := local.missing(); len(missing) > 0 {
					return fmt.Errorf("missing APIService: %v", missing)
				}
				return nil
			}}}
		},
	}
}
