package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/net/forward"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

// proxiedHeader marks a request that another server has forwarded; it is not forwarded again.
const proxiedHeader = "X-Kubernetes-Peer-Proxied"

// noPeer asks for a server's own resources only.
const noPeer = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer," +
	"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// maxDiscovery bounds another server's discovery document.
const maxDiscovery = 64 << 20

// delivery is a request on its way to another server.
type delivery struct {
	resource schema.GroupVersionResource
	servers  []*server // candidates, in order of preference
	user     user.Info
	upgrade  bool
	header   http.Header // of the response to the client
}

var _ forward.Route = (*delivery)(nil)

// More implements forward.Route.
func (d *delivery) More() bool { return len(d.servers) > 1 }

// Next implements forward.Route.
func (d *delivery) Next() string {
	d.servers = d.servers[1:]
	return d.servers[0].address
}

type deliveryKey struct{}

func deliveryOf(r *http.Request) *delivery {
	d, _ := r.Context().Value(deliveryKey{}).(*delivery)
	return d
}

// elsewhere returns the handler of a request for a resource that only other servers serve, or nil for all other
// requests.
func (p *peers) elsewhere(r *http.Request, info *request.Info) front.Handler {
	t := p.table.Load()
	if t == nil || !info.IsResource || r.Header.Get(proxiedHeader) == "true" {
		return nil
	}
	resource := schema.GroupVersionResource{Group: info.Group, Version: info.Version, Resource: info.Resource}
	servers := (*t)[resource]
	if len(servers) == 0 {
		return nil
	}
	snap := p.host.Catalog.Snapshot()
	if served, _ := snap.Served(info.Group, info.Version, info.Resource); served != nil ||
		snap.Remote(info.Group, info.Version) != nil {
		return nil // since the table was built
	}
	return func(w http.ResponseWriter, r *http.Request, _ *request.Info, u user.Info) {
		// The work of the other server costs this one only memory.
		defer request.Wait(r.Context())()
		d := &delivery{
			resource: resource, servers: slices.Clone(servers), user: u, header: w.Header(),
			upgrade: r.Header.Get("Upgrade") != "",
		}
		rand.Shuffle(len(d.servers), func(i, j int) { d.servers[i], d.servers[j] = d.servers[j], d.servers[i] })
		ctx := context.WithValue(p.host.Egress.ForRequest(r.Context()), deliveryKey{}, d)
		forward.Lend(p.proxy, w, r.WithContext(ctx))
	}
}

func (p *peers) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			d := deliveryOf(r.Out)
			forward.Rewrite(r, d.servers[0].address, d.user)
			r.Out.Header.Set(proxiedHeader, "true")
		},
		Transport: carrier{p},
		ModifyResponse: func(resp *http.Response) error {
			d := deliveryOf(resp.Request)
			forward.TakeHeaders(resp, d.header)
			p.metrics.count(resp.StatusCode, d.resource)
			return nil
		},
		ErrorHandler: p.failed,
		// It only logs disconnected clients and servers.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// carrier sends a request to another server.
type carrier struct{ peers *peers }

// RoundTrip implements http.RoundTripper.
func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	d := deliveryOf(r)
	return forward.Send(r, d, func(r *http.Request) (*http.Response, error) {
		return c.peers.connections.Load().For(d.upgrade).RoundTrip(r)
	})
}

// failed answers a request without a response.
func (p *peers) failed(w http.ResponseWriter, r *http.Request, err error) {
	if ctx := r.Context(); ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return // the client is gone
	}
	d := deliveryOf(r)
	p.metrics.count(http.StatusServiceUnavailable, d.resource)
	p.metrics.errors.WithLabelValues("proxy_transport", d.resource.Group, d.resource.Version, d.resource.Resource).Inc()
	p.host.Log.Info("a request to another server failed", "resource", d.resource.String(),
		"server", d.servers[0].name, "address", d.servers[0].address, "error", err)
	codec.WriteError(w, r, apierrors.NewServiceUnavailable(fmt.Sprintf(
		"%s is served by another API server, which cannot be reached", d.resource.GroupResource())))
}

// fetch reads the discovery of another server.
func (p *peers) fetch(ctx context.Context, s *server) (all []apidiscoveryv2.APIGroupDiscovery, err error) {
	for _, path := range []string{"/api", "/apis"} {
		groups, err := p.fetchList(ctx, s, path)
		if err != nil {
			return nil, fmt.Errorf("GET %s: %w", path, err)
		}
		all = append(all, groups...)
	}
	return all, nil
}

func (p *peers) fetchList(ctx context.Context, s *server, path string) ([]apidiscoveryv2.APIGroupDiscovery, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.address+path, nil)
	if err != nil {
		return nil, err
	}
	forward.Prepare(r, s.address, &user.DefaultInfo{
		Name: user.APIServerUser, UID: user.APIServerUser, Groups: []string{user.AllAuthenticated},
	})
	r.Header.Set("Accept", noPeer)
	r.Header.Set(proxiedHeader, "true")
	resp, err := p.connections.Load().Shared().RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	p.metrics.count(resp.StatusCode, schema.GroupVersionResource{})
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(foreign.Text(resp.Status))
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.NewDecoder(foreign.Reader(resp.Body, maxDiscovery)).Decode(&list); err != nil {
		return nil, err
	}
	if list.Kind != "APIGroupDiscoveryList" {
		return nil, fmt.Errorf("%q is not aggregated discovery", foreign.Text(list.Kind))
	}
	return list.Items, nil
}
