package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"maps"
	"net/http/httputil"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/discovery"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/identity"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/presence"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/forward"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

const (
	// deletedFor is how long requests for deleted groups are not forwarded, as in Kubernetes.
	deletedFor = 5 * time.Minute
	// lookEvery is the interval of checks of the authority file and of due work.
	lookEvery = 10 * time.Second
	// fetchTimeout bounds a read of another server's discovery. The back-off after failures is as long as they have
	// lasted, from retryFirst to retryLast.
	fetchTimeout          = 10 * time.Second
	retryFirst, retryLast = time.Second, 30 * time.Second
)

// table maps resources that this server does not serve to other servers. It is immutable.
type table map[schema.GroupVersionResource][]*server

// server is another server.
type server struct {
	name, holder, address string
	// groups are its API groups, the core group included; nil before the first success. It is replaced, not modified.
	groups    []apidiscoveryv2.APIGroupDiscovery
	requested bool
	wait      time.Duration
	due       time.Time // the time of the next attempt
}

// peers tracks the other servers, and forwards requests to them.
type peers struct {
	host        *part.Host
	settings    Settings
	own         string // the name of this server's Lease
	connections atomic.Pointer[forward.Connections]
	proxy       *httputil.ReverseProxy
	table       atomic.Pointer[table]
	published   *discovery.Peers
	metrics     *metrics
	wake        chan struct{}

	// The goroutine of run only:
	authorities []byte
	servers     map[string]*server
	here        map[schema.GroupVersion]bool // versions of definitions and APIServices
	deleted     map[schema.GroupVersion]time.Time
}

func newPeers(h *part.Host, s Settings) *peers {
	p := &peers{
		host: h, settings: s, wake: make(chan struct{}, 1), servers: map[string]*server{},
		here: map[schema.GroupVersion]bool{}, deleted: map[schema.GroupVersion]time.Time{}, metrics: newMetrics(),
		published: discovery.NewPeers(),
	}
	p.proxy = p.newProxy()
	h.View.Subscribe(p.observe)
	return p
}

// observe receives every change, in the view's goroutine.
func (p *peers) observe(events []*watchcache.Event) {
	for _, ev := range events {
		switch ev.Collection.Prefix() {
		case ref.Leases.Prefix:
			if ev.Entry.Namespace != metav1.NamespaceSystem || ev.Entry.Labels[identity.Label] != identity.Server {
				continue
			}
		case presence.Peers, control.DefinitionsPrefix, ref.APIServices.Prefix:
		default:
			continue
		}
		select {
		case p.wake <- struct{}{}:
		default:
		}
		return
	}
}

// run follows the other servers until ctx ends.
func (p *peers) run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	defer func() { p.connections.Load().CloseIdle() }()
	for {
		next := p.look(ctx)
		again := time.NewTimer(next)
		select {
		case <-p.wake:
		case <-again.C:
		case <-tick.C:
			if err := p.readAuthorities(); err != nil {
				p.host.Log.Warn("the authorities of other servers cannot be read; the previous ones stay in force",
					"file", p.settings.AuthorityFile, "error", err)
			}
		case <-ctx.Done():
			again.Stop()
			return nil
		}
		again.Stop()
	}
}

// readAuthorities reads the file. If it has changed, it replaces the connections and retries failed servers at once,
// since their failure may have been due to the old file.
func (p *peers) readAuthorities() error {
	text, err := os.ReadFile(p.settings.AuthorityFile)
	if err != nil {
		return err
	}
	if p.connections.Load() != nil && bytes.Equal(text, p.authorities) {
		return nil
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), ServerName: "kubernetes.default.svc",
	}
	if !config.RootCAs.AppendCertsFromPEM(text) {
		return errors.New("it contains no certificate")
	}
	if p.own, err = p.settings.Name(); err != nil {
		return err
	}
	p.authorities = text
	was := p.connections.Swap(forward.NewConnections(config, p.host.Egress.Dial(egress.ControlPlane), p.certificate))
	if was != nil {
		was.CloseIdle()
	}
	for _, s := range p.servers {
		s.wait, s.due = 0, time.Time{}
	}
	return nil
}

func (p *peers) certificate() *tls.Certificate {
	if p.host.Certificates == nil {
		return nil
	}
	return p.host.Certificates.ProxyClient()
}

// look updates the state, and returns the time until the next look.
func (p *peers) look(ctx context.Context) time.Duration {
	p.follow()
	p.exclude()
	p.publish()
	if p.ask(ctx) {
		p.exclude() // exclude groups that have been added meanwhile
		p.publish()
	}
	next := deletedFor
	for _, s := range p.servers {
		if !s.requested {
			next = min(next, max(s.due.Sub(p.host.Now()), time.Millisecond))
		}
	}
	return next
}

// follow updates the list of other servers: the ones with a Lease and a key.
func (p *peers) follow() {
	there := map[string]bool{}
	keys := p.host.View.Collection(presence.Peers).Snapshot()
	leases := p.host.View.Collection(ref.Leases.Prefix).Snapshot()
	leases.Scan(metav1.NamespaceSystem, "", func(e *watchcache.Entry) bool {
		if e.Labels[identity.Label] != identity.Server || e.Name == p.own {
			return true
		}
		var lease coordinationv1.Lease
		address := addressIn(keys.Get("", e.Name))
		if json.Unmarshal(e.JSON(), &lease) != nil || lease.Spec.HolderIdentity == nil || address == "" {
			return true
		}
		there[e.Name] = true
		s := p.servers[e.Name]
		if s == nil || s.holder != *lease.Spec.HolderIdentity || s.address != address {
			p.servers[e.Name] = &server{name: e.Name, holder: *lease.Spec.HolderIdentity, address: address}
		}
		return true
	})
	maps.DeleteFunc(p.servers, func(name string, _ *server) bool { return !there[name] })
}

// ask reads the discovery of servers that are due, and reports whether one has answered.
func (p *peers) ask(ctx context.Context) bool {
	var requests sync.WaitGroup
	var answered atomic.Bool
	now := p.host.Now()
	for _, s := range p.servers {
		if s.requested || now.Before(s.due) {
			continue
		}
		requests.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
			defer cancel()
			groups, err := p.fetch(ctx, s)
			if err == nil {
				s.groups, s.requested = groups, true
				answered.Store(true)
				return
			}
			s.wait = min(max(2*s.wait, retryFirst), retryLast)
			s.due = p.host.Now().Add(s.wait)
			if ctx.Err() == nil || !errors.Is(ctx.Err(), context.Canceled) {
				p.metrics.syncErrors.WithLabelValues("fetch_discovery").Inc()
				p.host.Log.Info("another server does not return its resources; the request is repeated later", "server", s.name,
					"address", s.address, "error", err)
			}
		})
	}
	requests.Wait()
	return answered.Load()
}

// exclude removes groups of definitions and APIServices, current or recently deleted ones, from other servers' groups.
func (p *peers) exclude() {
	now, here := p.host.Now(), broughtBy(p.host.Catalog.Snapshot())
	for gv := range p.here {
		if !here[gv] {
			p.deleted[gv] = now
		}
	}
	p.here = here
	maps.DeleteFunc(p.deleted, func(_ schema.GroupVersion, at time.Time) bool { return now.Sub(at) > deletedFor })
	for _, s := range p.servers {
		s.groups = without(s.groups, func(gv schema.GroupVersion) bool {
			_, gone := p.deleted[gv]
			return gone || here[gv]
		})
	}
}

// broughtBy returns the versions that definitions and APIServices bring.
func broughtBy(snap *catalog.Snapshot) map[schema.GroupVersion]bool {
	out := map[schema.GroupVersion]bool{}
	for _, g := range snap.Groups() {
		for _, v := range g.Versions {
			if v.Remote != nil || slices.ContainsFunc(v.Resources, (*catalog.Resource).Custom) {
				out[schema.GroupVersion{Group: g.Name, Version: v.Name}] = true
			}
		}
	}
	return out
}

// without returns groups without versions, and without groups that have none left.
func without(groups []apidiscoveryv2.APIGroupDiscovery, excluded func(schema.GroupVersion) bool,
) []apidiscoveryv2.APIGroupDiscovery {
	var out []apidiscoveryv2.APIGroupDiscovery
	for _, g := range groups {
		versions := slices.DeleteFunc(slices.Clone(g.Versions), func(v apidiscoveryv2.APIVersionDiscovery) bool {
			return excluded(schema.GroupVersion{Group: g.Name, Version: v.Version})
		})
		if len(versions) > 0 {
			g.Versions = versions
			out = append(out, g)
		}
	}
	return out
}

// publish updates the routing table, and the other servers' part of discovery.
func (p *peers) publish() {
	next, snap := table{}, p.host.Catalog.Snapshot()
	others := &discovery.Others{Own: p.own, Servers: map[string][]apidiscoveryv2.APIGroupDiscovery{}}
	for _, name := range slices.Sorted(maps.Keys(p.servers)) {
		s := p.servers[name]
		for _, g := range s.groups {
			if g.Name != "" { // each server serves its own discovery of the core group
				others.Servers[name] = append(others.Servers[name], g)
			}
			for _, v := range g.Versions {
				for _, r := range v.Resources {
					if served, _ := snap.Served(g.Name, v.Version, r.Resource); served == nil {
						gvr := schema.GroupVersionResource{Group: g.Name, Version: v.Version, Resource: r.Resource}
						next[gvr] = append(next[gvr], s)
					}
				}
			}
		}
	}
	if len(next) == 0 {
		p.table.Store(nil)
	} else {
		p.table.Store(&next)
	}
	if len(others.Servers) == 0 {
		others = nil
	}
	p.published.Set(others)
}
