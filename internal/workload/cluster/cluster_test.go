package cluster_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// TestKindsAreServed checks that the kinds are in the catalog.
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
	check(t, known, cluster.CSINodes)
	check(t, known, cluster.VolumeAttachments)
}

func check[T any, P interface {
	*T
	metav1.Object
}](t *testing.T, served map[catalog.GroupResource]*catalog.Resource, k cluster.Kind[T, P]) {
	t.Helper()
	r := served[catalog.GroupResource{Group: k.Group, Resource: k.Resource}]
	if r == nil || r.Kind != k.Kind || r.Prefix != k.Prefix || r.Version(k.Version) == nil {
		t.Errorf("%+v is %+v", k, r)
	}
}

// TestReadAndWrite checks that reads and writes are typed, that objects have their owner, and that a repeated event is
// counted.
func TestReadAndWrite(t *testing.T) {
	t.Parallel()
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	s.Create(ref.Namespaces.GroupResource(), "", `{"metadata":{"name":"shop"}}`)
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
	owner := cluster.Owner(s.View.Collection(ref.Pods.Prefix).Snapshot().Get("shop", made.Name))
	want := cluster.Reference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "its-uid"}
	if owner != want {
		t.Errorf("its owner: %+v", owner)
	}
	events := 0
	s.View.Collection(ref.Events.Prefix).Snapshot().Scan("shop", "", func(e *watchcache.Entry) bool {
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

// TestTypedIsDecoded checks that a typed object becomes the same object as its decoded JSON.
func TestTypedIsDecoded(t *testing.T) {
	t.Parallel()
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 6789, time.FixedZone("", 3600)))
	amounts := corev1.ResourceList{"cpu": resource.MustParse("1000m"), "memory": resource.MustParse("1024Mi")}
	meta := metav1.ObjectMeta{Name: "n", Labels: map[string]string{}, Finalizers: []string{}, CreationTimestamp: at}
	for in, typed := range map[string]any{
		"pods": &corev1.Pod{
			ObjectMeta: meta,
			Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v"}}, Containers: []corev1.Container{{
				Name: "c", Resources: corev1.ResourceRequirements{Requests: amounts, Limits: corev1.ResourceList{}},
				Ports: []corev1.ContainerPort{{ContainerPort: 80}},
			}}},
			Status: corev1.PodStatus{StartTime: &at},
		},
		"persistentvolumeclaims": &corev1.PersistentVolumeClaim{
			ObjectMeta: meta,
			Spec: corev1.PersistentVolumeClaimSpec{
				Resources: corev1.VolumeResourceRequirements{Requests: amounts},
			},
		},
		"events": &corev1.Event{
			ObjectMeta: meta, FirstTimestamp: at, EventTime: metav1.NewMicroTime(at.Time), Count: 1,
		},
	} {
		call := s.Call(catalog.GroupResource{Resource: in}, "default", "")
		got, err := s.Verbs.NewTyped(call, typed)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			t.Fatal(err)
		}
		want, err := s.Verbs.New(call, raw)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("of %s: %v, decoded %v", in, got, want)
		}
	}
}

// TestIndexOfOwners checks that Controlled returns the current objects of an owner, sorted by name, also after changes
// of the owner, and that Rest depends on their number.
func TestIndexOfOwners(t *testing.T) {
	t.Parallel()
	st := parttest.OpenStore(t, store.Config{Etcd: memory.New()})
	var shared cluster.Shared
	var x *cluster.Index
	s := parttest.Start(t, st, part.Part{Handlers: func(h *part.Host) part.Handlers {
		x = shared.Of(h)
		return part.Handlers{}
	}})
	s.Create(ref.Namespaces.GroupResource(), "", `{"metadata":{"name":"shop"}}`)
	c := cluster.Controller(s.Host, "replicaset-controller")
	owned := func(by types.UID) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: by, Controller: &yes},
		}
	}
	for _, name := range []string{"c", "a", "b"} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", OwnerReferences: owned("one")},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		if _, err := cluster.Pods.CreateNamed(t.Context(), c, pod); err != nil {
			t.Fatal(err)
		}
	}
	has := func(uid string, orphans bool, want string) {
		t.Helper()
		s.CatchUp()
		got := ""
		for _, p := range cluster.Pods.Controlled(x, "shop", uid, orphans) {
			got += p.Name + string(p.Status.Phase) + " "
		}
		if got != want {
			t.Errorf("%s has %q, not %q", uid, got, want)
		}
	}
	has("one", false, "aPending bPending cPending ")
	if rest := x.Rest(cluster.Pods.Prefix, "shop", "one"); rest != 15*time.Microsecond {
		t.Errorf("a rest of %s after 3 pods", rest)
	}
	edit := func(subresource string, change func(*corev1.Pod)) {
		t.Helper()
		do := func(p *corev1.Pod) error { change(p); return nil }
		now := cluster.Pods.Get(c, "shop", "b")
		var err error
		if subresource == "" {
			_, err = cluster.Pods.Update(t.Context(), c, now, do)
		} else {
			_, err = cluster.Pods.UpdateStatus(t.Context(), c, now, do)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	edit("status", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	has("one", false, "aPending bRunning cPending ")
	edit("", func(p *corev1.Pod) { p.OwnerReferences = nil })
	has("one", false, "aPending cPending ")
	has("one", true, "aPending bRunning cPending ")
	s.Create(ref.ReplicaSets.GroupResource(), "shop", `{"metadata":{"name":"web"},"spec":{
		"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
		"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	s.CatchUp()
	web := cluster.ReplicaSets.Get(c, "shop", "web")
	edit("", func(p *corev1.Pod) { p.OwnerReferences = owned(web.UID) })
	has(string(web.UID), false, "bRunning ")
	for key, want := range map[string]time.Duration{"shop/web": 5 * time.Microsecond, "shop/none": 0} {
		if rest := x.RestOf(cluster.ReplicaSets.Prefix, key); rest != want {
			t.Errorf("%s rests for %s", key, rest)
		}
	}
	edit("", func(p *corev1.Pod) { p.OwnerReferences = owned("two") })
	has("one", true, "aPending cPending ")
	has("two", false, "bRunning ")
	none := int64(0)
	gone := cluster.Pods.Get(c, "shop", "a")
	if err := cluster.Pods.Delete(t.Context(), c, gone, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		t.Fatal(err)
	}
	has("one", true, "cPending ")
}

// alarmed is a reconciler that requests one more reconcile after an hour.
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
	s := parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
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
