package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/kinds/network/address"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// still is a server of objects none of whose controllers runs: the test asks them, at a time that it sets.
type still struct {
	*testing.T
	Config
	all *Controllers
	now time.Time
}

func startStill(t *testing.T, st *store.Store) *still {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	resources := kinds.Resources()
	kinds.CoordinateLeases(resources)
	cat, view := catalog.New(resources...), watchcache.New(st, watchcache.Options{Log: log})
	Publish(cat, view, log)
	ranges := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}
	s := &still{T: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	now := func() time.Time { return s.now }
	s.Config = Config{View: view, Catalog: cat, Now: now, Log: log, Rest: rest.New(rest.Config{
		Catalog: cat, View: view, Store: st, Now: now, NewUID: uuid.NewString, NewSuffix: uuid.NewString, Log: log,
		Allocators: map[string]rest.Allocator{
			"services": address.New(address.Config{
				View: view, Ranges: ranges, NodePorts: utilnet.PortRange{Base: 30000, Size: 100}, Random: rand.Uint64N,
			}),
		},
	})}
	s.all = New(s.Config) // which has the view tell it of changes, so not while the view runs
	if err := view.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = view.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	if err := s.all.BootstrapServices(t.Context(), ranges, 6443); err != nil {
		t.Fatal(err)
	}
	return s
}

func openStore(t *testing.T, c store.Config) *store.Store {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	st, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func embedded(t *testing.T) *store.Embedded {
	return &store.Embedded{Dir: filepath.Join(t.TempDir(), "etcd"), NoSync: true, ListenClientURL: "http://127.0.0.1:0"}
}

func (s *still) call(gr catalog.GroupResource, namespace, name string) *rest.Call {
	s.Helper()
	c, err := s.Rest.Call(gr, namespace, name, identity("test"))
	if err != nil {
		s.Fatal(err)
	}
	return c
}

func (s *still) create(gr catalog.GroupResource, namespace, object string) {
	s.Helper()
	var obj rest.Object
	if err := json.Unmarshal([]byte(object), &obj); err != nil {
		s.Fatal(err)
	}
	c := s.call(gr, namespace, "")
	obj, err := s.Rest.New(c, obj)
	if err == nil {
		_, err = s.Rest.Create(s.Context(), c, obj, metav1.CreateOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *still) delete(gr catalog.GroupResource, namespace, name string) {
	s.Helper()
	if _, err := s.Rest.Delete(s.Context(), s.call(gr, namespace, name), metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// stored returns an object as the view shows it when it knows all that was written, "" if it is not there.
func (s *still) stored(prefix, namespace, name string) string {
	s.Helper()
	if _, err := s.View.Fresh(s.Context()); err != nil {
		s.Fatal(err)
	}
	e := s.View.Collection(prefix).Snapshot().Get(namespace, name)
	if e == nil {
		return ""
	}
	return string(e.JSON())
}

// does has a controller look at a key, and returns for how long it then wants to wait.
func (s *still) does(r reconciler, key string) time.Duration {
	s.Helper()
	if _, err := s.View.Fresh(s.Context()); err != nil {
		s.Fatal(err)
	}
	err := r.reconcile(s.Context(), key)
	var wait again
	if err != nil && !errors.As(err, &wait) {
		s.Fatal(err)
	}
	return time.Duration(wait)
}

func (s *still) has(object string, parts ...string) {
	s.Helper()
	for _, part := range parts {
		if !strings.Contains(object, part) {
			s.Errorf("%s lacks %s", object, part)
		}
	}
}

// A ServiceCIDR that is being deleted stays as long as a service has an address of it that is in no other, and ten
// seconds.
func TestServiceCIDRDeletion(t *testing.T) {
	t.Parallel()
	s := startStill(t, openStore(t, store.Config{Embedded: embedded(t)}))
	ranges := &serviceRanges{s.Config}
	show := func(name string) string { return s.stored(address.RangesPrefix, "", name) }
	s.has(show("kubernetes"), rangeFinalizer, `"cidrs":["10.0.0.0/24"]`,
		`"message":"Kubernetes Service CIDR is ready","reason":"","status":"True"`)

	s.create(rangesResource, "", `{"metadata":{"name":"more"},"spec":{"cidrs":["10.1.0.0/24"]}}`)
	s.does(ranges, "more")
	s.has(show("more"), rangeFinalizer, `"message":"Kubernetes Service CIDR is ready","reason":"","status":"True"`)
	s.create(servicesResource, "default",
		`{"metadata":{"name":"a"},"spec":{"clusterIP":"10.1.0.9","ports":[{"port":80}]}}`)
	s.delete(rangesResource, "", "more")
	if wait := s.does(ranges, "more"); wait != 0 {
		t.Errorf("while an address is in use, waits %s", wait)
	}
	s.has(show("more"), rangeFinalizer,
		`"message":"There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR","reason":"Terminating","status":"False"`)

	s.create(rangesResource, "", `{"metadata":{"name":"larger"},"spec":{"cidrs":["10.1.0.0/16"]}}`)
	if wait := s.does(ranges, "more"); wait != rangeGrace {
		t.Errorf("when another range has the address, waits %s, want %s", wait, rangeGrace)
	}
	s.delete(rangesResource, "", "larger")
	if got := show("larger"); got != "" {
		t.Errorf("a range that no controller has seen yet stays: %s", got)
	}
	s.delete(servicesResource, "default", "a")
	s.now = s.now.Add(rangeGrace)
	s.does(ranges, "more")
	if got := show("more"); got != "" {
		t.Errorf("nobody has an address of it: %s", got)
	}
}

// Whatever somebody does to the records of addresses and ports, they become again what the services have.
func TestRecordsAreRepaired(t *testing.T) {
	t.Parallel()
	s := startStill(t, openStore(t, store.Config{Embedded: embedded(t)}))
	repair := &allocationRepair{s.Config}
	s.create(servicesResource, "default",
		`{"metadata":{"name":"a"},"spec":{"type":"NodePort","clusterIP":"10.0.0.9","ports":[{"port":80,"nodePort":30009}]}}`)
	address9 := func() string { return s.stored(address.AddressesPrefix, "", "10.0.0.9") }
	var needed []string
	lost := s.View.Collection(address.AddressesPrefix)
	address9()
	repair.observe(&watchcache.Event{
		Type: watchcache.Deleted, Collection: lost, Entry: lost.Snapshot().Get("", "10.0.0.9"),
	}, func(key string) { needed = append(needed, key) })
	if len(needed) != 1 || needed[0] != "service default/a" {
		t.Errorf("what needs a look: %q", needed)
	}
	const older = `{"metadata":{"name":"a","namespace":"default"},"spec":{"clusterIP":"10.0.0.9"}}`
	services := s.View.Collection(servicesPrefix)
	for i, stored := range []string{older, strings.Replace(older, `"}}`, `","clusterIPs":["10.0.0.9"]}}`, 1)} {
		e, err := watchcache.NewEntry("default/a", []byte(stored), 1)
		if err != nil {
			t.Fatal(err)
		}
		needed = nil
		repair.observe(&watchcache.Event{Type: watchcache.Added, Collection: services, Entry: e},
			func(key string) { needed = append(needed, key) })
		if (len(needed) == 1 && needed[0] == "service default/a") != (i == 0) {
			t.Errorf("%s: what needs a look: %q", stored, needed)
		}
	}
	s.delete(addressesResource, "", "10.0.0.9")
	s.does(repair, "service default/a")
	s.has(address9(), `"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"`, `"name":"a"`)
	s.does(repair, "record ipaddresses/10.0.0.9")
	s.does(repair, "record nodeports/30009")
	if address9() == "" || s.stored(address.PortsPrefix, "", "30009") == "" {
		t.Error("records of a service are deleted")
	}

	const managed = `"labels":{"ipaddress.kubernetes.io/ip-family":"IPv4","ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}`
	for i, object := range []string{
		`{"metadata":{"name":"10.0.0.20",` + managed +
			`},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"a"}}}`,
		`{"metadata":{"name":"10.0.0.21",` + managed +
			`},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"none"}}}`,
		`{"metadata":{"name":"10.0.0.22",` + managed +
			`},"spec":{"parentRef":{"group":"example.com","resource":"things","name":"a"}}}`,
		`{"metadata":{"name":"10.0.0.23"},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"none"}}}`,
	} {
		s.create(addressesResource, "", object)
		name := fmt.Sprint("10.0.0.", 20+i)
		wait := s.does(repair, "record ipaddresses/"+name)
		if foreign := i == 3; foreign && wait != 0 || !foreign && wait != leakedFor {
			t.Errorf("%s: waits %s", name, wait)
		}
	}
	s.now = s.now.Add(leakedFor)
	for i := range 4 {
		name := fmt.Sprint("10.0.0.", 20+i)
		s.does(repair, "record ipaddresses/"+name)
		if there := s.stored(address.AddressesPrefix, "", name) != ""; there != (i == 3) {
			t.Errorf("%s is there after a minute: %v", name, there)
		}
	}
	if _, err := s.Rest.Store.Create(t.Context(), "nodeports/30010",
		[]byte(
			`{"metadata":{},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"a"}}}`)); err != nil {
		t.Fatal(err)
	}
	s.does(repair, "record nodeports/30010")
	if got := s.stored(address.PortsPrefix, "", "30010"); got != "" {
		t.Errorf("a port that the service does not have: %s", got)
	}

	s.create(endpointsResource, "default", `{"metadata":{"name":"a"}}`)
	s.does(repair, "endpoints default/a")
	if s.stored("services/endpoints", "default", "a") == "" {
		t.Error("the endpoints of a service are deleted")
	}
	s.delete(servicesResource, "default", "a")
	s.does(repair, "endpoints default/a")
	if got := s.stored("services/endpoints", "default", "a"); got != "" {
		t.Errorf("the endpoints of a service that is gone: %s", got)
	}
}

// What a server always has comes back when it is deleted, in the range of the flag that the server has now.
func TestKeep(t *testing.T) {
	t.Parallel()
	s := startStill(t, openStore(t, store.Config{Embedded: embedded(t)}))
	moved := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}
	round := func() {
		t.Helper()
		if _, err := s.View.Fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.all.keep(t.Context(), moved, 6443); err != nil {
			t.Fatal(err)
		}
		if _, err := s.View.Fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	round()
	before := s.View.Revision()
	round()
	if now := s.View.Revision(); now != before {
		t.Errorf("nothing was missing, and %d writes were made", now-before)
	}
	s.has(s.stored(address.RangesPrefix, "", "kubernetes"), `"10.0.0.0/24"`)
	s.create(rangesResource, "", `{"metadata":{"name":"new"},"spec":{"cidrs":["10.1.0.0/24"]}}`)
	s.does(&serviceRanges{s.Config}, "new")
	s.delete(rangesResource, "", "kubernetes")
	s.delete(servicesResource, "default", "kubernetes")
	s.does(&serviceRanges{s.Config}, "kubernetes")
	s.now = s.now.Add(rangeGrace + time.Second)
	s.does(&serviceRanges{s.Config}, "kubernetes")
	if got := s.stored(address.RangesPrefix, "", "kubernetes"); got != "" {
		t.Fatalf("the old range is still there: %s", got)
	}
	round()
	s.has(s.stored(address.RangesPrefix, "", "kubernetes"), `"10.1.0.0/24"`, `"status":"True"`)
	s.has(s.stored(servicesPrefix, "default", "kubernetes"), `"clusterIP":"10.1.0.1"`)

	tracking := func() string { return s.stored("configmaps", "kube-system", trackingConfigMap) }
	since := `"data":{"since":"` + s.now.UTC().Format(time.DateOnly) + `"}`
	s.delete(configMapsResource, "kube-system", trackingConfigMap)
	round()
	s.has(tracking(), since)
	s.delete(configMapsResource, "kube-system", trackingConfigMap)
	s.create(configMapsResource, "kube-system", `{"metadata":{"name":"`+trackingConfigMap+
		`"},"data":{"since":"some day"}}`)
	round()
	s.has(tracking(), since)
}

// refusal refuses every write, and notes who asks.
type refusal struct{ asked []string }

func (*refusal) Name() string { return "Refusal" }

func (r *refusal) Validate(_ context.Context, a *admit.Attributes) error {
	r.asked = append(r.asked, string(a.Operation)+" "+a.Resource.Plural+" "+a.Name+" by "+a.User.GetName())
	return admit.Forbidden(a, errors.New("nobody writes"))
}

// What policies and webhooks refuse does not keep the server from starting, and is tried again. They may know the
// server by its name.
func TestBootstrapIsRefused(t *testing.T) {
	t.Parallel()
	s := startStill(t, openStore(t, store.Config{Embedded: embedded(t)}))
	both := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fd00::/112")}
	r := &refusal{}
	s.Rest.Admit = admit.Chain{Plugins: []admit.Plugin{r}}
	if err := Bootstrap(t.Context(), s.Rest); err != nil {
		t.Error(err)
	}
	if err := s.all.BootstrapServices(t.Context(), both, 6443); err != nil {
		t.Error(err)
	}
	want := []string{
		"CREATE namespaces default by system:apiserver", "CREATE namespaces kube-system by system:apiserver",
		"CREATE namespaces kube-public by system:apiserver",
		"CREATE namespaces kube-node-lease by system:apiserver", "UPDATE servicecidrs kubernetes by system:apiserver",
	}
	if !slices.Equal(r.asked, want) {
		t.Errorf("asked %q\nwant  %q", r.asked, want)
	}
	if err := s.all.keep(t.Context(), both, 6443); err == nil {
		t.Error("nothing was refused")
	}
	s.Rest.Admit = admit.Chain{}
	if err := s.all.keep(t.Context(), both, 6443); err != nil {
		t.Error(err)
	}
	if _, err := s.View.Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.has(s.stored(address.RangesPrefix, "", "kubernetes"), `"fd00::/112"`)
	s.has(s.stored("namespaces", "", "default"), `"Active"`)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if refused(ended, apierrors.NewConflict(schema.GroupResource{}, "", nil)) ||
		refused(t.Context(), errors.New("the store is gone")) || refused(t.Context(), nil) {
		t.Error("not everything is a refusal")
	}
}

// Servers that share an etcd are all endpoints of the service kubernetes, until they withdraw.
func TestPresence(t *testing.T) {
	t.Parallel()
	etcd := openStore(t, store.Config{Embedded: embedded(t)})
	var all []*EndpointReconciler
	var servers []*still
	for i := range 2 {
		s := startStill(t, openStore(t, store.Config{External: &store.External{Endpoints: []string{etcd.ClientURL()}}}))
		servers = append(servers, s)
		all = append(all,
			&EndpointReconciler{
				Rest: s.Rest, Address: netip.MustParseAddr(fmt.Sprint("192.0.2.", 2-i)), Port: 6443 + i,
			})
	}
	want := func(what string, want ...string) {
		t.Helper()
		for _, s := range servers {
			endpoints, slice := s.stored("services/endpoints", "default", "kubernetes"),
				s.stored("endpointslices", "default", "kubernetes")
			s.has(endpoints, `"endpointslice.kubernetes.io/skip-mirror":"true"`)
			s.has(slice, `"addressType":"IPv4"`, `"`+discoveryv1.LabelServiceName+`":"kubernetes"`)
			var e struct {
				Subsets []struct {
					Addresses []struct{ IP string }
					Ports     []struct{ Port int }
				}
			}
			var l discoveryv1.EndpointSlice
			if err := errors.Join(json.Unmarshal([]byte(endpoints), &e),
				json.Unmarshal([]byte(slice), &l)); err != nil {
				t.Fatal(err)
			}
			var one, other []string
			for _, subset := range e.Subsets {
				for _, a := range subset.Addresses {
					one = append(one, fmt.Sprint(a.IP, ":", subset.Ports[0].Port))
				}
			}
			for _, endpoint := range l.Endpoints {
				if *endpoint.Conditions.Ready {
					other = append(other, fmt.Sprint(endpoint.Addresses[0], ":", *l.Ports[0].Port))
				}
			}
			if !slices.Equal(one, want) || !slices.Equal(other, want) {
				t.Errorf("%s: endpoints %q, endpoint slice %q, want %q", what, one, other, want)
			}
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(all[0].Announce(t.Context()))
	want("one", "192.0.2.2:6443")
	must(all[1].Announce(t.Context()))
	want("two", "192.0.2.1:6443", "192.0.2.2:6443")
	before := servers[0].View.Revision()
	must(all[0].publish(t.Context(), all[0].servers()))
	must(all[1].publish(t.Context(), all[1].servers()))
	want("again", "192.0.2.1:6443", "192.0.2.2:6443")
	if now := servers[0].View.Revision(); now != before {
		t.Errorf("nothing has changed, and %d writes were made", now-before)
	}
	must(all[0].withdraw(t.Context()))
	want("the other", "192.0.2.1:6443")
	must(all[1].Announce(t.Context()))
	want("the other alone", "192.0.2.1:6444")
	must(all[1].withdraw(t.Context()))
	want("none")
	must(all[0].Announce(t.Context()))
	want("one again", "192.0.2.2:6443")
}
