package oraclebuiltins

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	_ "unsafe" // for go:linkname

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	core "k8s.io/kubernetes/pkg/apis/core"
	svcreg "k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/storage"
	netutils "k8s.io/utils/net"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/services/address"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// transaction is storage.transaction, which is not exported.
type transaction interface {
	Commit()
	Revert()
}

//go:linkname allocateCreate k8s.io/kubernetes/pkg/registry/core/service/storage.(*Allocators).allocateCreate
func allocateCreate(*storage.Allocators, *core.Service, bool) (transaction, error)

//go:linkname allocateUpdate k8s.io/kubernetes/pkg/registry/core/service/storage.(*Allocators).allocateUpdate
func allocateUpdate(*storage.Allocators, storage.After, storage.Before, bool) (transaction, error)

// TestAssignMatchesUpstream creates random services, and changes existing ones, in clusters of one family and of two,
// and compares families, addresses, ports and errors with Kubernetes. All writes are dry runs, in which Kubernetes
// makes no random choice. CHECKS is the number of services in each cluster, 2000 if unset.
func TestAssignMatchesUpstream(t *testing.T) {
	t.Parallel()
	rounds := 2000
	if s := os.Getenv("CHECKS"); s != "" {
		rounds, _ = strconv.Atoi(s)
	}
	for _, ranges := range []string{"10.0.0.0/24", "fd00::/112", "10.0.0.0/24,fd00::/112", "fd00::/112,10.0.0.0/24"} {
		t.Run(strings.ReplaceAll(ranges, "/", "_"), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, strings.Split(ranges, ","))
			good := 0
			for seed := range int64(rounds) {
				r := rand.New(rand.NewSource(seed))
				obj := randomService(r)
				desc := fmt.Sprintf("seed %d: %v", seed, obj["spec"])
				old := c.create(desc, obj)
				if old == nil {
					continue
				}
				good++
				for range 4 {
					next := changedService(r, old)
					c.update(fmt.Sprintf("seed %d: %v to %v", seed, old["spec"], next["spec"]), next, old)
				}
				if t.Failed() {
					return
				}
			}
			if good < rounds/20 {
				t.Errorf("only %d of %d services are possible: the test says little", good, rounds)
			}
		})
	}
}

// cluster assigns addresses on both sides.
type cluster struct {
	comparison
	ours   *address.Services
	theirs storage.Allocators
}

// usedPorts are taken on both sides.
var usedPorts = []int{30001, 30003}

func newCluster(t *testing.T, ranges []string) *cluster {
	c := &cluster{comparison: comparison{t: t, kind: "Service"}}
	for _, r := range kinds.Resources() {
		if r.Kind == "Service" {
			c.r = r
		}
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	st, err := store.Open(t.Context(),
		store.Config{Etcd: embedded.Config{Dir: filepath.Join(t.TempDir(), "etcd"), NoSync: true}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	records := map[string]string{
		"servicecidrs/kubernetes": fmt.Sprintf(`{"metadata":{"name":"kubernetes"},"spec":{"cidrs":["%s"]}}`,
			strings.Join(ranges, `","`)),
	}
	for _, port := range usedPorts {
		records[fmt.Sprint("nodeports/", port)] = `{"metadata":{}}`
	}
	for key, value := range records {
		if _, err := st.Create(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	view := watchcache.New(st, watchcache.Options{Log: log})
	if err := view.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ports := utilnet.ParsePortRangeOrDie("30000-32767")
	config := address.Config{View: view, NodePorts: *ports, Random: func(uint64) uint64 { return 0 }}
	families := map[core.IPFamily]ipallocator.Interface{}
	var first core.IPFamily
	for _, text := range ranges {
		config.Ranges = append(config.Ranges, netip.MustParsePrefix(text))
		_, network, _ := netutils.ParseCIDRSloppy(text)
		allocator, err := ipallocator.NewInMemory(network)
		if err != nil {
			t.Fatal(err)
		}
		families[allocator.IPFamily()] = allocator
		if first == "" {
			first = allocator.IPFamily()
		}
	}
	allocator, err := portallocator.NewInMemory(*ports)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range usedPorts {
		if err := allocator.Allocate(port); err != nil {
			t.Fatal(err)
		}
	}
	c.ours, c.theirs = address.New(config), makeAlloc(first, families, allocator)
	return c
}

// create returns the stored service, or nil if it is refused.
func (c *cluster) create(resource string, obj map[string]any) map[string]any {
	c.object = resource
	ours, theirs, ok := c.read(obj)
	if !ok {
		return nil
	}
	svc := theirs.(*core.Service)
	c.r.Strategy.PrepareCreate(ours, catalog.Env{})
	err := c.ours.Assign(ours, nil, true)
	normalizeClusterIPs(storage.After{Service: svc}, storage.Before{})
	_, theirErr := allocateCreate(&c.theirs, svc, true)
	if !c.agree(ours, svc, err, theirErr) || err != nil || len(c.r.Strategy.Validate(context.Background(), ours)) > 0 {
		return nil
	}
	return ours
}

func (c *cluster) update(resource string, obj, old map[string]any) {
	c.object = resource
	ours, theirs, ok := c.read(obj)
	was, theirOld, okOld := c.read(old)
	if !ok || !okOld {
		return
	}
	svc, before := theirs.(*core.Service), storage.Before{Service: theirOld.(*core.Service)}
	c.r.Strategy.PrepareUpdate(ours, was, "", catalog.Env{})
	err := c.ours.Assign(ours, was, true)
	after := storage.After{Service: svc}
	patchAllocatedValues(after, before)
	normalizeClusterIPs(after, before)
	theirErr, panicked := c.allocateUpdate(after, before)
	if panicked {
		return
	}
	if theirErr == nil {
		svcreg.Strategy.PrepareForUpdate(c.ctx(""), svc, before.Service)
	}
	c.agree(ours, svc, err, theirErr)
}

// allocateUpdate also reports whether Kubernetes panics: it does when a headless service with a family that the cluster
// lacks becomes a service that needs an address of it.
func (c *cluster) allocateUpdate(after storage.After, before storage.Before) (err error, panicked bool) {
	defer func() {
		if recover() != nil {
			panicked = true
		}
	}()
	_, err = allocateUpdate(&c.theirs, after, before, true)
	return err, false
}

// agree compares both sides' services or errors.
func (c *cluster) agree(ours map[string]any, theirs *core.Service, err, theirErr error) bool {
	c.t.Helper()
	text, want := fmt.Sprint(err), fmt.Sprint(theirErr)
	if spec := ours["spec"].(map[string]any); fmt.Sprint(spec["clusterIPs"]) != fmt.Sprintf("[%v]", spec["clusterIP"]) {
		// Kubernetes chooses at random which of two addresses it reports as wrong.
		text, _, _ = strings.Cut(text, "failed to allocate IP")
		want, _, _ = strings.Cut(want, "failed to allocate IP")
	}
	if text != want {
		c.t.Errorf("%s\n+ %v\n- %v", c.object, err, theirErr)
		return false
	}
	if err != nil {
		return true
	}
	v1 := &corev1.Service{}
	if err := legacyscheme.Scheme.Convert(theirs, v1, nil); err != nil {
		c.t.Fatal(err)
	}
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v1)
	if err != nil {
		c.t.Fatal(err)
	}
	have, wanted := ours["spec"].(map[string]any), whole["spec"].(map[string]any)
	if have["type"] == "ExternalName" {
		delete(wanted, "internalTrafficPolicy") // dropped when the service is read
	}
	if !reflect.DeepEqual(have, wanted) {
		c.t.Errorf("%s\n+ %v\n- %v", c.object, have, wanted)
		return false
	}
	return true
}

func randomService(r *rand.Rand) map[string]any {
	spec := map[string]any{}
	for range 1 + r.Intn(6) {
		changeSpec(r, spec)
	}
	if r.Intn(4) > 0 && spec["ports"] == nil {
		spec["ports"] = randomPorts(r)
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "a", "namespace": "b"}, "spec": spec,
	}
}

func changedService(r *rand.Rand, old map[string]any) map[string]any {
	next := runtime.DeepCopyJSON(old)
	for range 1 + r.Intn(3) {
		changeSpec(r, next["spec"].(map[string]any))
	}
	return next
}

// changeSpec sets or drops one field.
func changeSpec(r *rand.Rand, spec map[string]any) {
	one := func(values ...any) any { return values[r.Intn(len(values))] }
	name := one("type", "type", "clusterIP", "clusterIPs", "both", "ipFamilies", "ipFamilyPolicy", "ipFamilyPolicy",
		"selector", "ports", "ports",
		"allocateLoadBalancerNodePorts", "externalTrafficPolicy", "healthCheckNodePort", "drop").(string)
	four, six := one("10.0.0.5", "10.0.0.6", "10.1.0.5", "10.0.0.0"), one("fd00::5", "fd00::6", "fe00::5", "FD00::7")
	switch name {
	case "type":
		if spec["type"] = one("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"); spec["type"] == "ExternalName" {
			spec["externalName"] = "example.com"
		}
	case "clusterIP":
		spec["clusterIP"] = one("", "None", four, six)
	case "clusterIPs", "both":
		list := one([]any{}, []any{four}, []any{six}, []any{four, six}, []any{six, four}, []any{four, four},
			[]any{"None"}, []any{"None", six}, []any{"10.0.0.5", "fd00::5"}).([]any)
		spec["clusterIPs"] = list
		if name == "both" && len(list) > 0 {
			spec["clusterIP"] = list[0]
		}
	case "ipFamilies":
		spec["ipFamilies"] = one([]any{}, []any{"IPv4"}, []any{"IPv6"}, []any{"IPv4", "IPv6"}, []any{"IPv6", "IPv4"},
			[]any{"IPv4", "IPv4"}, []any{"IPv5"})
	case "ipFamilyPolicy":
		spec["ipFamilyPolicy"] = one("SingleStack", "PreferDualStack", "RequireDualStack", "Dual")
	case "selector":
		spec["selector"] = one(map[string]any{"a": "b"}, map[string]any{})
	case "ports":
		spec["ports"] = randomPorts(r)
	case "allocateLoadBalancerNodePorts":
		spec[name] = one(true, false)
	case "externalTrafficPolicy":
		spec[name] = one("Local", "Cluster")
	case "healthCheckNodePort":
		spec[name] = one(int64(30002), int64(30001), int64(30100), int64(80))
	case "drop":
		delete(spec,
			one("type", "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort",
				"externalTrafficPolicy", "allocateLoadBalancerNodePorts").(string))
	}
}

func randomPorts(r *rand.Rand) []any {
	var out []any
	for i := range 1 + r.Intn(3) {
		port := map[string]any{
			"name": string(rune('a' + i)), "port": int64(80 + r.Intn(2)), "protocol": []string{"TCP", "UDP"}[r.Intn(2)],
		}
		if r.Intn(3) == 0 {
			port["nodePort"] = int64(30000 + r.Intn(5))
		}
		out = append(out, port)
	}
	return out
}
