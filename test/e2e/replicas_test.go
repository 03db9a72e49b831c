package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

var definitionsGVR = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

func definition(group, plural, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{
					"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				},
			}},
		},
	}}
}

// TestReplicas runs three servers on one etcd cluster of three.
func TestReplicas(t *testing.T) {
	t.Parallel()
	etcd := startCluster(t, 3, nil)
	var sites []*site
	for range 3 {
		sites = append(sites, startSite(t, "--etcd-servers="+etcd.endpoints()))
	}
	t.Run("a definition is served by all at once", func(t *testing.T) { definitionEverywhere(t, sites) })
	t.Run("two definitions cannot claim one name", func(t *testing.T) { oneNameOnce(t, sites) })
	t.Run("a write is read everywhere", func(t *testing.T) { readEverywhere(t, sites) })
	t.Run("controllers go on elsewhere", func(t *testing.T) { controllersMove(t, sites) })
	t.Run("without etcd", func(t *testing.T) { withoutEtcd(t, etcd, sites) })
}

func definitionEverywhere(t *testing.T, sites []*site) {
	for i := range 9 {
		ctx := bounded(t, commandLimit)
		plural := fmt.Sprintf("gadgets%d", i)
		here, there := sites[i%3], sites[(i+1)%3]
		if _, err := dynamic.NewForConfigOrDie(here.server.config(t)).Resource(definitionsGVR).Create(ctx,
			definition("replicas.example.com", plural, "Gadget"+fmt.Sprint(i)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		gvr := schema.GroupVersionResource{Group: "replicas.example.com", Version: "v1", Resource: plural}
		client := dynamic.NewForConfigOrDie(there.server.config(t)).Resource(gvr).Namespace("default")
		obj := &unstructured.Unstructured{
			Object: map[string]any{
				"apiVersion": "replicas.example.com/v1", "kind": "Gadget" + fmt.Sprint(i),
				"metadata": map[string]any{"name": "a"},
			},
		}
		if _, err := client.Create(ctx, obj, metav1.CreateOptions{}); err != nil {
			t.Errorf("round %d: %v", i, err)
		}
		if i%2 == 0 { // a new namespace, too, is served at once
			name := fmt.Sprintf("ns-%d", i)
			if _, err := kubernetes.NewForConfigOrDie(here.server.config(t)).CoreV1().Namespaces().Create(ctx,
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := kubernetes.NewForConfigOrDie(there.server.config(t)).CoreV1().ConfigMaps(name).Create(ctx,
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
}

// oneNameOnce has each replica make a definition of the same kind at the same time.
func oneNameOnce(t *testing.T, sites []*site) {
	for round := range 5 {
		ctx := bounded(t, commandLimit)
		group := fmt.Sprintf("names%d.example.com", round)
		var all sync.WaitGroup
		for i, s := range sites {
			client := dynamic.NewForConfigOrDie(s.server.config(t)).Resource(definitionsGVR)
			all.Go(func() {
				if _, err := client.Create(ctx, definition(group, fmt.Sprintf("things%d", i), "Thing"),
					metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		accepted := 0
		for i := range sites {
			def, err := dynamic.NewForConfigOrDie(sites[0].server.config(t)).Resource(definitionsGVR).Get(ctx,
				fmt.Sprintf("things%d.%s", i, group), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if kind, _, _ := unstructured.NestedString(def.Object, "status", "acceptedNames", "kind"); kind == "Thing" {
				accepted++
			}
		}
		if accepted != 1 {
			t.Errorf("round %d: %d definitions have the kind", round, accepted)
		}
	}
}

func readEverywhere(t *testing.T, sites []*site) {
	ctx := bounded(t, commandLimit)
	var clients []kubernetes.Interface
	for _, s := range sites {
		clients = append(clients, kubernetes.NewForConfigOrDie(s.server.config(t)))
	}
	for i := range 60 {
		name := fmt.Sprintf("read-%d", i)
		if _, err := clients[i%3].CoreV1().ConfigMaps("default").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := clients[(i+1)%3].CoreV1().ConfigMaps("default").Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		list, err := clients[(i+2)%3].CoreV1().ConfigMaps("default").List(ctx,
			metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil || len(list.Items) != 1 {
			t.Errorf("list: %d items, %v", len(list.Items), err)
		}
	}
}

// controllersMove kills the replica with the working controllers, and then stops the next one. Each time it checks that
// a namespace is deleted.
func controllersMove(t *testing.T, sites []*site) {
	lease := func(s *site) *coordinationv1.Lease {
		t.Helper()
		l, err := kubernetes.NewForConfigOrDie(s.server.config(t)).CoordinationV1().Leases("kube-system").Get(bounded(t,
			commandLimit), "bowsprit-controllers", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	holder := func(s *site) string { return *lease(s).Spec.HolderIdentity }
	for round, end := range []func(*site){func(s *site) { s.server.kill() }, func(s *site) { s.server.stop(t) }} {
		before := holder(sites[0])
		deleteNamespace(t, sites[round], fmt.Sprintf("moving-%d", round))
		// Find the process: the Lease changes hands only without it.
		for i, s := range sites {
			end(s)
			others := sites[(i+1)%3]
			began := time.Now()
			name := fmt.Sprintf("moved-%d-%d", round, i)
			deleteNamespace(t, others, name)
			moved := holder(others) != before
			t.Logf("round %d: server %d ended; a namespace was gone after %v; leader moved: %v", round, i,
				time.Since(began).Round(time.Millisecond), moved)
			s.start()
			if moved {
				break
			}
		}
		if now := holder(sites[0]); now == before {
			t.Errorf("round %d: %s leads all the time", round, now)
		}
	}
}

// deleteNamespace makes a namespace with an object and deletes it, and returns when the controllers have emptied it.
func deleteNamespace(t *testing.T, s *site, name string) {
	t.Helper()
	ctx := bounded(t, commandLimit)
	client := kubernetes.NewForConfigOrDie(s.server.config(t)).CoreV1()
	if _, err := client.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ConfigMaps(name).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := client.Namespaces().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := client.Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for ev := range w.ResultChan() {
		if ev.Type == "DELETED" {
			return
		}
	}
	t.Fatalf("namespace %s stays", name)
}

// withoutEtcd takes the majority of the members away for a while.
func withoutEtcd(t *testing.T, etcd *cluster, sites []*site) {
	ctx := bounded(t, 3*commandLimit)
	client := kubernetes.NewForConfigOrDie(sites[0].server.config(t))
	ready := func() int {
		var code int
		client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		return code
	}
	if code := ready(); code != http.StatusOK {
		t.Errorf("readyz is %d", code)
	}
	etcd.members[0].kill()
	for { // it may have been the leader; then the first try is lost
		_, err := client.CoreV1().ConfigMaps("default").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "two-members"}}, metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			break
		}
		t.Logf("with two members of three: %v", err)
		if ctx.Err() != nil {
			t.FailNow()
		}
	}
	etcd.members[1].kill()
	for ready() == http.StatusOK {
		if ctx.Err() != nil {
			t.Fatal("it claims to be ready without etcd")
		}
	}
	if err := client.Discovery().RESTClient().Get().AbsPath("/livez/ping").Do(ctx).Error(); err != nil {
		t.Errorf("livez/ping: %v", err)
	}
	list, err := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil || len(list.Items) == 0 {
		t.Errorf("read with resourceVersion=0: %d items, %v", len(list.Items), err)
	}
	if _, err := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{}); err == nil {
		t.Error("a read that cannot know what is new got an answer")
	} else {
		t.Logf("a read that must be fresh: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	if _, err := client.CoreV1().ConfigMaps("default").Create(short,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "lost"}}, metav1.CreateOptions{}); err == nil {
		t.Error("a write without a majority was acknowledged")
	}
	cancel()
	var starting sync.WaitGroup
	for _, m := range etcd.members[:2] {
		starting.Go(func() {
			if err := m.start(); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	for i, s := range sites {
		client := kubernetes.NewForConfigOrDie(s.server.config(t))
		for {
			var code int
			client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
			if code == http.StatusOK {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("server %d does not recover", i)
			}
		}
		if _, err := client.CoreV1().ConfigMaps("default").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("again-%d", i)}},
			metav1.CreateOptions{}); err != nil {
			t.Errorf("server %d: %v", i, err)
		}
	}
}
