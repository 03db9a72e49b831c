package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/services/address"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

// still is a server of services without running controllers.
type still struct{ *parttest.Server }

func startStill(t *testing.T, st *store.Store) *still {
	t.Helper()
	ranges := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}
	s := parttest.Start(t, st, address.Part(ranges, utilnet.PortRange{Base: 30000, Size: 100}))
	if err := (&services{s.Host, ranges, false}).start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &still{s}
}

// TestServiceCIDRDeletion checks that a deleted ServiceCIDR stays while a service has an address in it and in no other
// one, and for at least ten seconds.
func TestServiceCIDRDeletion(t *testing.T) {
	t.Parallel()
	s := startStill(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	ranges := &serviceRanges{s.Host}
	show := func(name string) string { return s.Stored(ref.ServiceCIDRs.Prefix, "", name) }
	s.Has(show("kubernetes"), rangeFinalizer, `"cidrs":["10.0.0.0/24"]`,
		`"message":"Kubernetes Service CIDR is ready","reason":"","status":"True"`)

	s.Create(rangesResource, "", `{"metadata":{"name":"more"},"spec":{"cidrs":["10.1.0.0/24"]}}`)
	s.Does(ranges, "more")
	s.Has(show("more"), rangeFinalizer, `"message":"Kubernetes Service CIDR is ready","reason":"","status":"True"`)
	s.Create(servicesResource, "default",
		`{"metadata":{"name":"a"},"spec":{"clusterIP":"10.1.0.9","ports":[{"port":80}]}}`)
	s.Delete(rangesResource, "", "more")
	if wait := s.Does(ranges, "more"); wait != 0 {
		t.Errorf("while an address is in use, waits %s", wait)
	}
	s.Has(show("more"), rangeFinalizer,
		`"message":"There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR","reason":"Terminating","status":"False"`)

	s.Create(rangesResource, "", `{"metadata":{"name":"larger"},"spec":{"cidrs":["10.1.0.0/16"]}}`)
	if wait := s.Does(ranges, "more"); wait != rangeGrace {
		t.Errorf("when another range has the address, waits %s, want %s", wait, rangeGrace)
	}
	s.Delete(rangesResource, "", "larger")
	if got := show("larger"); got != "" {
		t.Errorf("a range that no controller has seen yet stays: %s", got)
	}
	s.Delete(servicesResource, "default", "a")
	s.Time = s.Time.Add(rangeGrace)
	s.Does(ranges, "more")
	if got := show("more"); got != "" {
		t.Errorf("no service has an address of it: %s", got)
	}
}

// TestRecordsAreRepaired checks that the records of addresses and ports are repaired after changes by clients.
func TestRecordsAreRepaired(t *testing.T) {
	t.Parallel()
	s := startStill(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	repair := &allocationRepair{s.Host}
	s.Create(servicesResource, "default",
		`{"metadata":{"name":"a"},"spec":{"type":"NodePort","clusterIP":"10.0.0.9","ports":[{"port":80,"nodePort":30009}]}}`)
	address9 := func() string { return s.Stored(ref.IPAddresses.Prefix, "", "10.0.0.9") }
	var needed []string
	lost := s.View.Collection(ref.IPAddresses.Prefix)
	address9()
	repair.Observe(&watchcache.Event{
		Type: watchcache.Deleted, Collection: lost, Entry: lost.Snapshot().Get("", "10.0.0.9"),
	}, func(key string) { needed = append(needed, key) })
	if len(needed) != 1 || needed[0] != "service default/a" {
		t.Errorf("what needs a look: %q", needed)
	}
	const older = `{"metadata":{"name":"a","namespace":"default"},"spec":{"clusterIP":"10.0.0.9"}}`
	services := s.View.Collection(ref.Services.Prefix)
	for i, stored := range []string{older, strings.Replace(older, `"}}`, `","clusterIPs":["10.0.0.9"]}}`, 1)} {
		e, err := watchcache.NewEntry("default/a", []byte(stored), 1)
		if err != nil {
			t.Fatal(err)
		}
		needed = nil
		repair.Observe(&watchcache.Event{Type: watchcache.Added, Collection: services, Entry: e},
			func(key string) { needed = append(needed, key) })
		if (len(needed) == 1 && needed[0] == "service default/a") != (i == 0) {
			t.Errorf("%s: what needs a look: %q", stored, needed)
		}
	}
	s.Delete(addressesResource, "", "10.0.0.9")
	s.Does(repair, "service default/a")
	s.Has(address9(), `"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"`, `"name":"a"`)
	s.Does(repair, "record ipaddresses/10.0.0.9")
	s.Does(repair, "record nodeports/30009")
	if address9() == "" || s.Stored(address.PortsPrefix, "", "30009") == "" {
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
		s.Create(addressesResource, "", object)
		name := fmt.Sprint("10.0.0.", 20+i)
		wait := s.Does(repair, "record ipaddresses/"+name)
		if foreign := i == 3; foreign && wait != 0 || !foreign && wait != leakedFor {
			t.Errorf("%s: waits %s", name, wait)
		}
	}
	s.Time = s.Time.Add(leakedFor)
	for i := range 4 {
		name := fmt.Sprint("10.0.0.", 20+i)
		s.Does(repair, "record ipaddresses/"+name)
		if there := s.Stored(ref.IPAddresses.Prefix, "", name) != ""; there != (i == 3) {
			t.Errorf("%s is there after a minute: %v", name, there)
		}
	}
	if _, err := s.Store.Create(t.Context(), "nodeports/30010",
		[]byte(
			`{"metadata":{},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"a"}}}`)); err != nil {
		t.Fatal(err)
	}
	s.Does(repair, "record nodeports/30010")
	if got := s.Stored(address.PortsPrefix, "", "30010"); got != "" {
		t.Errorf("a port that the service does not have: %s", got)
	}

	s.Create(endpointsResource, "default", `{"metadata":{"name":"a"}}`)
	s.Does(repair, "endpoints default/a")
	if s.Stored("services/endpoints", "default", "a") == "" {
		t.Error("the endpoints of a service are deleted")
	}
	s.Delete(servicesResource, "default", "a")
	s.Does(repair, "endpoints default/a")
	if got := s.Stored("services/endpoints", "default", "a"); got != "" {
		t.Errorf("the endpoints of a service that is gone: %s", got)
	}
}

// TestKeepRange checks that a server with another default range keeps the range of a cluster that exists.
func TestKeepRange(t *testing.T) {
	t.Parallel()
	s := startStill(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	large := []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}
	for range 2 { // the first cluster has 10.0.0.0/24
		if err := (&services{s.Host, large, true}).start(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Has(s.Stored(ref.ServiceCIDRs.Prefix, "", "kubernetes"), `"10.0.0.0/24"`)
		s.Delete(servicesResource, "default", "kubernetes")
		if _, err := s.View.Fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := (&services{s.Host, large, true}).keep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.View.Fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Has(s.Stored(ref.Services.Prefix, "default", "kubernetes"), `"clusterIP":"10.0.0.1"`)
	}
}

// TestKeep checks that the default objects are recreated after a deletion, in the range of the current flag.
func TestKeep(t *testing.T) {
	t.Parallel()
	s := startStill(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	moved := &services{s.Host, []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}, false}
	round := func() {
		t.Helper()
		if _, err := s.View.Fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := moved.keep(t.Context()); err != nil {
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
	s.Has(s.Stored(ref.ServiceCIDRs.Prefix, "", "kubernetes"), `"10.0.0.0/24"`)
	s.Create(rangesResource, "", `{"metadata":{"name":"new"},"spec":{"cidrs":["10.1.0.0/24"]}}`)
	s.Does(&serviceRanges{s.Host}, "new")
	s.Delete(rangesResource, "", "kubernetes")
	s.Delete(servicesResource, "default", "kubernetes")
	s.Does(&serviceRanges{s.Host}, "kubernetes")
	s.Time = s.Time.Add(rangeGrace + time.Second)
	s.Does(&serviceRanges{s.Host}, "kubernetes")
	if got := s.Stored(ref.ServiceCIDRs.Prefix, "", "kubernetes"); got != "" {
		t.Fatalf("the old range is still there: %s", got)
	}
	round()
	s.Has(s.Stored(ref.ServiceCIDRs.Prefix, "", "kubernetes"), `"10.1.0.0/24"`, `"status":"True"`)
	s.Has(s.Stored(ref.Services.Prefix, "default", "kubernetes"), `"clusterIP":"10.1.0.1"`)
}

// refusal rejects every write, and records the users.
type refusal struct{ requests []string }

func (*refusal) Name() string { return "Refusal" }

func (r *refusal) Validate(_ context.Context, a *admit.Attributes) error {
	r.requests = append(r.requests, string(a.Operation)+" "+a.Resource.Plural+" "+a.Name+" by "+a.User.GetName())
	return admit.Forbidden(a, errors.New("nobody writes"))
}

// TestBootstrapIsRefused checks that rejections by policies and webhooks do not prevent the start of the server, and
// are retried. The server writes under its own user name.
func TestBootstrapIsRefused(t *testing.T) {
	t.Parallel()
	s := startStill(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	ranges := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fd00::/112")}
	both := &services{s.Host, ranges, false}
	r := &refusal{}
	s.Admit(r)
	if err := control.Bootstrap(t.Context(), s.Verbs); err != nil {
		t.Error(err)
	}
	if err := both.start(t.Context()); err != nil {
		t.Error(err)
	}
	want := []string{
		"CREATE namespaces default by system:apiserver", "CREATE namespaces kube-system by system:apiserver",
		"CREATE namespaces kube-public by system:apiserver",
		"CREATE namespaces kube-node-lease by system:apiserver", "UPDATE servicecidrs kubernetes by system:apiserver",
	}
	if !slices.Equal(r.requests, want) {
		t.Errorf("asked %q\nwant  %q", r.requests, want)
	}
	if err := errors.Join(control.KeepNamespaces(t.Context(), s.Verbs), both.keep(t.Context())); err == nil {
		t.Error("nothing was refused")
	}
	s.Admit()
	if err := errors.Join(control.KeepNamespaces(t.Context(), s.Verbs), both.keep(t.Context())); err != nil {
		t.Error(err)
	}
	if _, err := s.View.Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Has(s.Stored(ref.ServiceCIDRs.Prefix, "", "kubernetes"), `"fd00::/112"`)
	s.Has(s.Stored("namespaces", "", "default"), `"Active"`)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if control.Refused(ended, apierrors.NewConflict(schema.GroupResource{}, "", nil)) ||
		control.Refused(t.Context(), errors.New("the store is gone")) || control.Refused(t.Context(), nil) {
		t.Error("not everything is a refusal")
	}
}

// Servers that share an etcd are all endpoints of the service kubernetes, until they withdraw.
func TestPresence(t *testing.T) {
	t.Parallel()
	etcd := memory.New()
	var all []*EndpointReconciler
	var servers []*still
	for i := range 2 {
		s := startStill(t,
			parttest.OpenStore(t, store.Config{Etcd: etcd.Shared()}))
		servers = append(servers, s)
		all = append(all,
			&EndpointReconciler{
				Verbs: s.Verbs, Store: s.Store, Address: netip.MustParseAddr(fmt.Sprint("192.0.2.", 2-i)),
				Port: 6443 + i,
			})
	}
	want := func(desc string, want ...string) {
		t.Helper()
		for _, s := range servers {
			endpoints, slice := s.Stored("services/endpoints", "default", "kubernetes"),
				s.Stored("endpointslices", "default", "kubernetes")
			s.Has(endpoints, `"endpointslice.kubernetes.io/skip-mirror":"true"`)
			s.Has(slice, `"addressType":"IPv4"`, `"`+discoveryv1.LabelServiceName+`":"kubernetes"`)
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
				t.Errorf("%s: endpoints %q, endpoint slice %q, want %q", desc, one, other, want)
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
