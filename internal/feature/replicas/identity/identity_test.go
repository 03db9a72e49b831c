package identity

import (
	"context"
	"encoding/json"
	"maps"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

// still is a server without running controllers.
type still struct{ *parttest.Server }

func start(t *testing.T, st *store.Store) *still {
	t.Helper()
	return &still{parttest.Start(t, st)}
}

// TestIdentityName checks that the name equals that of a running kube-apiserver 1.36.3 on a host of that name.
func TestIdentityName(t *testing.T) {
	t.Parallel()
	if got, want := Name("vm"), "apiserver-wlv32tlttr4jl3gtroqexyxapa"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// leases returns the Leases in kube-system by name.
func (s *still) leases() map[string]*coordinationv1.Lease {
	s.Helper()
	if _, err := s.View.Fresh(s.Context()); err != nil {
		s.Fatal(err)
	}
	out := map[string]*coordinationv1.Lease{}
	s.View.Collection(ref.Leases.Prefix).Snapshot().Scan("kube-system", "", func(e *watchcache.Entry) bool {
		lease := &coordinationv1.Lease{}
		if err := json.Unmarshal(e.JSON(), lease); err != nil {
			s.Error(err)
		}
		out[e.Name] = lease
		return true
	})
	return out
}

func TestIdentityLease(t *testing.T) {
	t.Parallel()
	const name = "apiserver-wlv32tlttr4jl3gtroqexyxapa"
	s := start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	if err := control.Bootstrap(t.Context(), s.Verbs); err != nil {
		t.Fatal(err)
	}
	one := &Lease{Verbs: s.Verbs, Hostname: "vm", Peer: "192.0.2.2:6443"}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(one.Begin(t.Context()))
	first := s.leases()[name]
	want := map[string]string{"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": "vm"}
	if first == nil || !maps.Equal(first.Labels, want) ||
		first.Annotations["kubernetes.io/peer-advertise-address"] != "192.0.2.2:6443" {
		t.Fatalf("%+v", first)
	}
	if *first.Spec.HolderIdentity != one.holder || *first.Spec.LeaseDurationSeconds != 3600 ||
		!first.Spec.RenewTime.Time.Equal(s.Time) {
		t.Errorf("%+v", first.Spec)
	}
	if m := first.ManagedFields; len(m) != 1 || m[0].Manager != "kube-apiserver" || m[0].Operation != "Update" {
		t.Errorf("owned by %+v", m)
	}

	s.Time = s.Time.Add(10 * time.Second)
	do(one.renew(t.Context()))
	renewed := s.leases()[name]
	if renewed.UID != first.UID || !renewed.Spec.RenewTime.Time.Equal(s.Time) {
		t.Errorf("%+v", renewed)
	}

	// A server that starts on the same host does not take over a remaining Lease; a deleted Lease is recreated.
	another := &Lease{Verbs: s.Verbs, Hostname: "vm"}
	do(another.Begin(t.Context()))
	if l := s.leases()[name]; l.UID == first.UID || *l.Spec.HolderIdentity != another.holder || l.Annotations != nil {
		t.Errorf("%+v", l)
	}
	s.Delete(leasesResource, "kube-system", name)
	do(another.renew(t.Context()))
	if l := s.leases()[name]; l == nil || *l.Spec.HolderIdentity != another.holder {
		t.Errorf("%+v", l)
	}

	// Only Leases of terminated servers are deleted.
	do((&Lease{Verbs: s.Verbs, Hostname: "gone"}).Begin(t.Context()))
	s.Create(leasesResource, "kube-system", `{"metadata":{"name":"other"},"spec":{"holderIdentity":"x"}}`)
	s.Create(leasesResource, "kube-system",
		`{"metadata":{"name":"never","labels":{"apiserver.kubernetes.io/identity":"kube-apiserver"}}}`)
	s.Time = s.Time.Add(time.Hour)
	do(another.renew(t.Context()))
	another.collect(t.Context())
	if l := s.leases(); len(l) != 3 || l[Name("gone")] == nil {
		t.Errorf("%d leases", len(l))
	}
	s.Time = s.Time.Add(time.Second)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	another.Run(ended) // collects as far as allowed, and deletes its own
	another.collect(t.Context())
	if l := s.leases(); len(l) != 1 || l["other"] == nil {
		t.Errorf("%d leases", len(l))
	}
}
