package cluster_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// The kinds are those of the catalog.
func TestKindsAreServed(t *testing.T) {
	t.Parallel()
	known := map[catalog.GroupResource]*catalog.Resource{}
	for _, r := range kinds.Resources() {
		known[catalog.GroupResource{Group: r.Group, Resource: r.Plural}] = r
	}
	check(t, known, cluster.Pods)
	check(t, known, cluster.Nodes)
	check(t, known, cluster.Namespaces)
	check(t, known, cluster.Services)
	check(t, known, cluster.Endpoints)
	check(t, known, cluster.ReplicationControllers)
	check(t, known, cluster.PersistentVolumeClaims)
	check(t, known, cluster.PersistentVolumes)
	check(t, known, cluster.Deployments)
	check(t, known, cluster.ReplicaSets)
	check(t, known, cluster.StatefulSets)
	check(t, known, cluster.DaemonSets)
	check(t, known, cluster.ControllerRevisions)
	check(t, known, cluster.Jobs)
	check(t, known, cluster.CronJobs)
	check(t, known, cluster.EndpointSlices)
	check(t, known, cluster.PodDisruptionBudgets)
	check(t, known, cluster.HorizontalPodAutoscalers)
	check(t, known, cluster.Leases)
	check(t, known, cluster.PriorityClasses)
	check(t, known, cluster.StorageClasses)
}

func check[T any, P interface {
	*T
	metav1.Object
}](t *testing.T, known map[catalog.GroupResource]*catalog.Resource, k cluster.Kind[T, P]) {
	t.Helper()
	r := known[catalog.GroupResource{Group: k.Group, Resource: k.Resource}]
	if r == nil || r.Kind != k.Kind || r.Prefix != k.Prefix || r.Version(k.Version) == nil {
		t.Errorf("%+v is %+v", k, r)
	}
}

// What a component writes and reads is typed, knows its owner, and an event that says the same again counts.
func TestReadAndWrite(t *testing.T) {
	t.Parallel()
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Embedded: parttest.Embedded(t)}))
	s.Create(catalog.GroupResource{Resource: "namespaces"}, "", `{"metadata":{"name":"shop"}}`)
	c := cluster.Controller(s.Host, "replicaset-controller")
	yes := true
	made, err := cluster.Pods.Create(t.Context(), c, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Namespace: "shop", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "its-uid", Controller: &yes},
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = cluster.Pods.UpdateStatus(t.Context(), c, made, func(p *corev1.Pod) error {
		p.Status.Phase = corev1.PodRunning
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.Normal(t.Context(), cluster.Pods.Ref(made), "Tested", "for the %s time", "nth")
		s.CatchUp()
	}
	if p := cluster.Pods.Get(c, "shop", made.Name); p == nil || p.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod: %v", p)
	}
	owner := cluster.Owner(s.View.Collection("pods").Snapshot().Get("shop", made.Name))
	want := cluster.Reference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "its-uid"}
	if owner != want {
		t.Errorf("its owner: %+v", owner)
	}
	events := 0
	s.View.Collection("events").Snapshot().Scan("shop", "", func(e *watchcache.Entry) bool {
		events++
		s.Has(string(e.JSON()), `"count":3`, `"message":"for the nth time"`, `"component":"replicaset-controller"`)
		return true
	})
	if events != 1 {
		t.Errorf("%d events", events)
	}
	stale := *made
	stale.UID = "of-an-older-one"
	_, err = cluster.Pods.Update(t.Context(), c, &stale, func(*corev1.Pod) error { return nil })
	if control.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("an update of a pod that was made anew: %v", err)
	}
	if err := cluster.Pods.Delete(t.Context(), c, made, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// alarmed is a reconciler that wants to look again after an hour, once.
type alarmed struct{ looks int }

func (a *alarmed) Observe(*watchcache.Event, func(string)) {}

func (a *alarmed) Reconcile(context.Context, string) error {
	if a.looks++; a.looks == 1 {
		return control.Again(time.Hour)
	}
	return nil
}

// A pause counts by the cluster's clock, and is over when the key is looked at before.
func TestPausesCountByTheClock(t *testing.T) {
	t.Parallel()
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Embedded: parttest.Embedded(t)}))
	var due []func()
	stopped := 0
	s.AfterFunc = func(d time.Duration, f func()) func() bool {
		if d != time.Hour {
			t.Errorf("a pause of %s", d)
		}
		due = append(due, f)
		return func() bool { stopped++; return true }
	}
	var needed []string
	r := cluster.Timed(s.Host, &alarmed{})
	r.(control.Requester).Requests(func(key string) { needed = append(needed, key) })
	if wait := s.Does(r, "key"); wait != 0 || len(due) != 1 {
		t.Fatalf("waits %s, %d alarms", wait, len(due))
	}
	due[0]()
	if len(needed) != 1 || needed[0] != "key" {
		t.Errorf("needed: %q", needed)
	}
	if s.Does(r, "key"); len(due) != 1 || stopped != 1 {
		t.Errorf("%d alarms, %d stopped", len(due), stopped)
	}
}
