package aggregation

import (
	"context"
	"math/rand/v2"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/net/forward"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Where services and their addresses are stored.
// addresses are where a service listens, as long as no service and no endpoints have changed.
type addresses struct {
	from [3]*watchcache.Snapshot
	list []string
}

// route is a list of addresses, "host:port", for a request: the addresses of a service in turn, from a random one.
type route struct {
	list     []string
	at, left int
}

func (r *route) address() string { return r.list[r.at] }

var _ forward.Route = (*route)(nil)

// More implements forward.Route.
func (r *route) More() bool { return r.left > 0 }

// Next implements forward.Route.
func (r *route) Next() string {
	r.left--
	r.at = (r.at + 1) % len(r.list)
	return r.address()
}

// address returns where to send a request, "host:port".
func (a *aggregator) address(ctx context.Context, r *remote) (string, error) {
	to, err := a.route(ctx, r)
	if err != nil {
		return "", err
	}
	return to.address(), nil
}

// route returns where to send a request.
func (a *aggregator) route(ctx context.Context, r *remote) (route, error) {
	known := r.addresses.Load()
	if known == nil || !a.current(known) {
		known = &addresses{}
		for i, prefix := range []string{ref.Services.Prefix, ref.EndpointSlices.Prefix, ref.Endpoints.Prefix} {
			known.from[i] = a.host.View.Collection(prefix).Snapshot()
		}
		s := r.spec.Service
		var err error
		if a.settings.Routing {
			known.list, err = a.resolver.Addresses(ctx, s.Namespace, s.Name, *s.Port)
		} else {
			known.list = make([]string, 1)
			known.list[0], err = a.resolver.ClusterAddress(ctx, s.Namespace, s.Name, *s.Port)
		}
		if err != nil {
			return route{}, err
		}
		r.addresses.Store(known)
	}
	if len(known.list) == 1 {
		return route{list: known.list}, nil
	}
	return route{list: known.list, at: rand.IntN(len(known.list)), left: min(retries, len(known.list)-1)}, nil
}

// retries is the number of further addresses that are tried if a connection cannot be opened.
const retries = 3

func (a *aggregator) current(current *addresses) bool {
	for i, prefix := range []string{ref.Services.Prefix, ref.EndpointSlices.Prefix, ref.Endpoints.Prefix} {
		if !a.host.View.Collection(prefix).IsCurrent(current.from[i]) {
			return false
		}
	}
	return true
}

// concerns returns the service that an event is about, or "" if it is about none.
func concerns(ev *watchcache.Event) (namespace, name string) {
	switch ev.Collection.Prefix() {
	case ref.Services.Prefix, ref.Endpoints.Prefix:
		return ev.Entry.Namespace, ev.Entry.Name
	case ref.EndpointSlices.Prefix:
		return ev.Entry.Namespace, ev.Entry.Labels[sliceService]
	}
	return "", ""
}

// sliceService is the label of an EndpointSlice that names its service.
const sliceService = "kubernetes.io/service-name"
