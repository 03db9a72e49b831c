package address_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/services"
	"github.com/bowsprit/bowsprit/internal/feature/services/address"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

var (
	serviceKind = ref.Services.GroupResource()
	addresses   = ref.IPAddresses.GroupResource()
	admin       = &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}
)

// replica is a server of objects, without HTTP and without controllers.
type replica struct {
	*verb.Verbs
	store *store.Store
	t     testing.TB
}

// start returns servers that share a store, each with a view of its own. ranges is the flag's value.
func start(t testing.TB, n int, ranges, ports string, plugins ...admit.Plugin) []*replica {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	st, err := store.Open(t.Context(),
		store.Config{Etcd: memory.New(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	var networks []netip.Prefix
	for text := range strings.SplitSeq(ranges, ",") {
		networks = append(networks, netip.MustParsePrefix(text))
	}
	nodePorts, err := utilnet.ParsePortRange(ports)
	if err != nil {
		t.Fatal(err)
	}
	var out []*replica
	for range n {
		kinds := kinds.Resources()
		address.Install(kinds, networks)
		cat, view := catalog.New(kinds...), watchcache.New(st, watchcache.Options{Log: log})
		control.Publish(cat, view, log)
		s := verb.New(verb.Config{
			Catalog: cat, View: view, Store: st, Admit: admit.Chain{Plugins: plugins}, Now: time.Now,
			NewUID: uuid.NewString, NewSuffix: uuid.NewString, Log: log,
			Allocators: map[string]verb.Allocator{
				"services": address.New(address.Config{
					View: view, Ranges: networks, NodePorts: *nodePorts, Random: rand.Uint64N,
				}),
			},
		})
		if err := view.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		running.Go(func() { _ = view.Run(ctx) })
		loops := services.Part(services.Settings{Ranges: networks, Advertised: unreachable})
		host := &part.Host{
			Verbs: s, View: view, Catalog: cat, Now: time.Now, Log: log, Runs: func(string) bool { return true },
			Port: 6443,
		}
		if err := loops.Start(ctx, host); err != nil {
			t.Fatal(err)
		}
		out = append(out, &replica{s, st, t})
	}
	return out
}

func unreachable() (netip.Addr, error) { return netip.Addr{}, errors.New("no server listens") }

func newService(name string, spec object.Object) object.Object {
	if spec["ports"] == nil && spec["type"] != "ExternalName" {
		spec["ports"] = []any{object.Object{"port": int64(80)}}
	}
	return object.Object{"metadata": object.Object{"name": name}, "spec": spec}
}

func (r *replica) call(gr catalog.GroupResource, name string) *verb.Call {
	r.t.Helper()
	namespace := "default"
	if gr != serviceKind {
		namespace = ""
	}
	c, err := r.Call(gr, namespace, name, admin)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func (r *replica) make(obj object.Object) (object.Object, error) {
	c := r.call(serviceKind, "")
	obj, err := r.New(c, obj)
	if err != nil {
		return nil, err
	}
	made, err := r.Create(r.t.Context(), c, obj, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return made.Object["spec"].(object.Object), nil
}

// patch changes a service's spec by a merge patch.
func (r *replica) patch(name, spec string) (object.Object, error) {
	c := r.call(serviceKind, name)
	res, err := r.Patch(r.t.Context(), c,
		decode.Patch{Type: types.MergePatchType, Data: []byte(`{"spec":` + spec + `}`)}, metav1.PatchOptions{})
	if err != nil {
		return nil, err
	}
	return res.Object["spec"].(object.Object), nil
}

func (r *replica) remove(name string) {
	r.t.Helper()
	if _, err := r.Delete(r.t.Context(), r.call(serviceKind, name), metav1.DeleteOptions{}); err != nil {
		r.t.Error(err)
	}
}

// records returns the allocated addresses and ports, without the service kubernetes'.
func (r *replica) records() []string {
	r.t.Helper()
	var out []string
	for _, prefix := range []string{ref.IPAddresses.Prefix, address.PortsPrefix} {
		page, err := r.store.Range(r.t.Context(), store.RangeOptions{Prefix: prefix + "/"})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, record := range page.Records {
			if !strings.Contains(string(record.Value), `"name":"kubernetes"`) {
				out = append(out, strings.TrimPrefix(record.Key, prefix+"/"))
			}
		}
	}
	return out
}

func (r *replica) want(desc string, want ...string) {
	r.t.Helper()
	slices.Sort(want)
	have := r.records()
	slices.Sort(have)
	if !slices.Equal(have, want) {
		r.t.Errorf("%s: %q is reserved, want %q", desc, have, want)
	}
}

// TestNobodyGetsWhatAnotherHas runs many clients of two servers that request more addresses and ports than exist. No
// value is allocated twice, released values can be allocated again, and at the end all are free.
func TestNobodyGetsWhatAnotherHas(t *testing.T) {
	t.Parallel()
	all := start(t, 2, "10.0.0.0/26,fd00::/122", "30000-30039")
	const clients, rounds = 16, 12
	var mu sync.Mutex
	owners := map[string]string{}
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			r := all[client%2]
			var mine []string
			for round := range rounds {
				name := fmt.Sprintf("s%d-%d", client, round)
				spec := object.Object{
					"type":           []string{"ClusterIP", "NodePort", "LoadBalancer"}[round%3],
					"ipFamilyPolicy": []string{"SingleStack", "PreferDualStack"}[round%2],
				}
				if round%4 == 3 {
					spec["clusterIP"] = fmt.Sprintf("10.0.0.%d", 1+client%8)
				}
				got, err := r.make(newService(name, spec))
				if err != nil {
					if status := apierrors.APIStatus(nil); !errors.As(err, &status) ||
						!strings.Contains(err.Error(), "range is full") &&
							!strings.Contains(err.Error(), "already allocated") {
						t.Errorf("%s: %v", name, err)
					}
				} else {
					mu.Lock()
					for _, claim := range claims(got) {
						if owner, taken := owners[claim]; taken {
							t.Errorf("%s has %s, which %s has", name, claim, owner)
						}
						owners[claim] = name
					}
					mu.Unlock()
					mine = append(mine, name)
				}
				if len(mine) > 3 || round == rounds-1 {
					for _, name := range mine {
						mu.Lock() // from here on another client may get it
						for claim, owner := range owners {
							if owner == name {
								delete(owners, claim)
							}
						}
						mu.Unlock()
						r.remove(name)
					}
					mine = nil
				}
			}
		})
	}
	running.Wait()
	all[0].want("at the end")
}

// claims are the addresses and ports of a service.
func claims(spec object.Object) []string {
	var out []string
	for _, ip := range spec["clusterIPs"].([]any) {
		out = append(out, ip.(string))
	}
	for _, p := range spec["ports"].([]any) {
		if n := p.(object.Object)["nodePort"]; n != nil {
			out = append(out, fmt.Sprint(n))
		}
	}
	return out
}

// TestRangeIsFull checks that every address and port of a range can be allocated, the lower ones last; then the range
// is full.
func TestRangeIsFull(t *testing.T) {
	t.Parallel()
	r := start(t, 1, "10.0.0.0/27", "30000-30002")[0]
	lower := 0
	for i := range 29 { // the service kubernetes has one
		spec, err := r.make(newService(fmt.Sprint("s", i), object.Object{}))
		if err != nil {
			t.Fatal(err)
		}
		ip := netip.MustParseAddr(spec["clusterIP"].(string))
		if ip.Less(netip.MustParseAddr("10.0.0.17")) {
			lower++
		} else if lower > 0 {
			t.Errorf("%s comes after one for those who name their address", ip)
		}
	}
	const full = `Internal error occurred: failed to allocate a serviceIP for Service "more": range is full: ` +
		`create a ServiceCIDR with more addresses, or start a new cluster with a larger --service-cluster-ip-range`
	if _, err := r.make(newService("more", object.Object{})); err == nil || err.Error() != full {
		t.Errorf("one more address: %v", err)
	}
	r.remove("s3")
	r.remove("s4")
	r.remove("s5")
	for i := range 3 {
		if _, err := r.make(newService(fmt.Sprint("n", i), object.Object{"type": "NodePort"})); err != nil {
			t.Error(err)
		}
	}
	r.remove("s6")
	if _, err := r.make(newService("more", object.Object{"type": "NodePort"})); err == nil ||
		err.Error() != "Internal error occurred: failed to allocate a nodePort: range is full: "+
			"widen it with --service-node-port-range" {
		t.Errorf("one more port: %v", err)
	}
}

// refuse is an admission plugin that refuses services with a label.
type refuse struct{}

func (refuse) Name() string { return "Refuse" }

func (refuse) Validate(_ context.Context, a *admit.Attributes) error {
	meta, _ := a.Object["metadata"].(object.Object)
	labels, _ := meta["labels"].(object.Object)
	if labels["refuse"] != nil {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, a.Name, errors.New("no"))
	}
	return nil
}

// TestReserved checks that the values of a service are allocated as long as it has them, whatever happens to requests
// about it.
func TestReserved(t *testing.T) {
	t.Parallel()
	r := start(t, 1, "10.0.0.0/24,fd00::/112", "30000-32767", refuse{})[0]
	must := func(spec object.Object, err error) object.Object {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return spec
	}
	never := func(want string) func(object.Object, error) {
		return func(_ object.Object, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
	both := object.Object{
		"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": int64(30100),
		"ipFamilyPolicy": "RequireDualStack",
		"clusterIP":      "10.0.0.9", "clusterIPs": []any{"10.0.0.9", "fd00::9"},
		"ports": []any{object.Object{"port": int64(80), "nodePort": int64(30080)}},
	}
	refused := newService("both", both)
	refused["metadata"].(object.Object)["labels"] = object.Object{"refuse": "yes"}
	never("forbidden")(r.make(refused))
	never("Unsupported value")(r.make(newService("both",
		object.Object{"clusterIP": "10.0.0.9", "sessionAffinity": "Sometimes"})))
	r.want("after refusals")

	must(r.make(newService("both", both)))
	all := []string{"10.0.0.9", "fd00::9", "30080", "30100"}
	r.want("after creation", all...)
	never("already exists")(r.make(newService("both", object.Object{})))
	never("fd00:0:0::9: provided IP is already allocated")(r.make(newService("other",
		object.Object{"ipFamilies": []any{"IPv6"}, "clusterIP": "fd00:0:0::9"})))
	never("must be 'SingleStack' to release the secondary cluster IP")(r.patch("both", `{"clusterIPs":["10.0.0.9"]}`))
	r.want("after more refusals", all...)

	must(r.patch("both", `{"ipFamilyPolicy":"SingleStack"}`))
	r.want("with one family", "10.0.0.9", "30080", "30100")
	must(r.patch("both", `{"externalTrafficPolicy":"Cluster"}`))
	r.want("without a port for health", "10.0.0.9", "30080")
	must(r.patch("both",
		`{"ipFamilyPolicy":"PreferDualStack","ipFamilies":["IPv4","IPv6"],"clusterIPs":["10.0.0.9","fd00::8"]}`))
	r.want("with two families again", "10.0.0.9", "fd00::8", "30080")
	must(r.patch("both", `{"type":"ClusterIP"}`))
	r.want("without ports", "10.0.0.9", "fd00::8")
	must(r.patch("both", `{"type":"ExternalName","externalName":"example.com"}`))
	r.want("without anything")
	spec := must(r.patch("both", `{"type":"NodePort","externalName":null}`))
	r.want("with everything", claims(spec)...)

	// A finalizer keeps the service, and with it the allocation.
	c := r.call(serviceKind, "both")
	finalizers := func(list string) {
		t.Helper()
		if _, err := r.Patch(t.Context(), r.call(serviceKind, "both"), decode.Patch{
			Type: types.MergePatchType, Data: []byte(`{"metadata":{"finalizers":` + list + `}}`),
		}, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	finalizers(`["example.com/hold"]`)
	if _, err := r.Delete(t.Context(), c, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
	r.remove("both")
	r.want("while it is being deleted", claims(spec)...)
	finalizers("null")
	r.want("at the end")
}

// TestLostRecord checks that the value of a deleted record can go to another service, and that the deletion of the
// first service does not release it.
func TestLostRecord(t *testing.T) {
	t.Parallel()
	r := start(t, 1, "10.0.0.0/24", "30000-32767")[0]
	if _, err := r.make(newService("first", object.Object{"clusterIP": "10.0.0.9"})); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Delete(t.Context(), r.call(addresses, "10.0.0.9"), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.make(newService("second", object.Object{"clusterIP": "10.0.0.9"})); err != nil {
		t.Fatal(err)
	}
	if err := r.Repair(t.Context(), r.call(serviceKind, "first")); err != nil {
		t.Error(err)
	}
	r.remove("first")
	r.want("after the first", "10.0.0.9")
	r.remove("second")
	r.want("after the second")
}

// TestOlderService checks that a service stored without lists of addresses is shown with them, and can be updated by a
// client without them.
func TestOlderService(t *testing.T) {
	t.Parallel()
	r := start(t, 1, "10.0.0.0/24", "30000-32767")[0]
	const old = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"old","namespace":"default","uid":"u"},"spec":{"clusterIP":"10.0.0.9","ports":[{"port":80}]}}`
	revision, err := r.store.Create(t.Context(), "services/specs/default/old", []byte(old))
	if err == nil {
		err = r.View().WaitFor(t.Context(), revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	spec, err := r.patch("old", `{"clusterIPs":null,"sessionAffinity":"ClientIP"}`)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(spec["clusterIPs"], []any{"10.0.0.9"}) ||
		!reflect.DeepEqual(spec["ipFamilies"], []any{"IPv4"}) || spec["ipFamilyPolicy"] != "SingleStack" {
		t.Errorf("spec: %v", spec)
	}
	if err := r.Repair(t.Context(), r.call(serviceKind, "old")); err != nil {
		t.Error(err)
	}
	r.want("after Restore", "10.0.0.9")
}

// Restore writes the records of a service that an earlier version has stored.
func TestRestore(t *testing.T) {
	t.Parallel()
	r := start(t, 1, "10.0.0.0/24", "30000-32767")[0]
	const old = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"old","namespace":"default","uid":"u"},` +
		`"spec":{"type":"NodePort","clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"],"ports":[{"port":80,"nodePort":30080}]}}`
	revision, err := r.store.Create(t.Context(), "services/specs/default/old", []byte(old))
	if err == nil {
		err = r.View().WaitFor(t.Context(), revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Repair(t.Context(), r.call(serviceKind, "old")); err != nil {
		t.Error(err)
	}
	r.want("after Restore", "10.0.0.9", "30080")
	for prefix, name := range map[string]string{ref.IPAddresses.Prefix: "10.0.0.9", address.PortsPrefix: "30080"} {
		if stray, err := r.Leaked(r.call(serviceKind, "old"), prefix, name); err != nil || stray {
			t.Errorf("%s is stray: %v, %v", name, stray, err)
		}
		if stray, err := r.Leaked(r.call(serviceKind, "none"), prefix, name); err != nil || !stray {
			t.Errorf("%s of a service that is not there is stray: %v, %v", name, stray, err)
		}
	}
	r.remove("old")
	r.want("at the end")
}

// BenchmarkCreate creates and deletes a service: without addresses, with one, with two, and with a port as well.
func BenchmarkCreate(b *testing.B) {
	for name, spec := range map[string]object.Object{
		"none":  {"type": "ExternalName", "externalName": "example.com"},
		"one":   {},
		"two":   {"ipFamilyPolicy": "RequireDualStack"},
		"ports": {"type": "NodePort"},
	} {
		b.Run(name, func(b *testing.B) {
			r := start(b, 1, "10.0.0.0/16,fd00::/112", "30000-32767")[0]
			for b.Loop() {
				if _, err := r.make(newService("a", runtime.DeepCopyJSON(spec))); err != nil {
					b.Fatal(err)
				}
				r.remove("a")
			}
		})
	}
}
