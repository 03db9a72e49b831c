package extension_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/extension"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
	"github.com/bowsprit/bowsprit/test/vessels"
	"github.com/bowsprit/bowsprit/testserver"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

var vesselsGVR = schema.GroupVersionResource{Group: vessels.Group, Version: "v1", Resource: "vessels"}

func dynamicOf(t *testing.T, s *testserver.Server) dynamic.Interface {
	t.Helper()
	d, err := dynamic.NewForConfig(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// in returns a storage, or ends the test.
func in(t *testing.T, s extension.Storage, err error) extension.Storage {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inEtcd returns vessels and harbours with an etcd as their storage.
func inEtcd(t *testing.T, url string) []extension.Kind {
	t.Helper()
	all, err := kindsInEtcd(url)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func kindsInEtcd(url string) (all []extension.Kind, err error) {
	all = vessels.Kinds()
	for i, prefix := range []string{"/sea/vessels", "/sea/harbours"} {
		if all[i].Storage, err = (extension.Etcd{Servers: []string{url}, Prefix: prefix}).Storage(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func etcd(t *testing.T) *store.Store {
	t.Helper()
	return parttest.OpenStore(t, store.Config{Prefix: "/sea/vessels", Etcd: etcdtest.Config(t)})
}

// TestEtcdTable runs the table of client tests on kinds with an etcd of their own.
func TestEtcdTable(t *testing.T) {
	t.Parallel()
	vessels.Run(t, startWith(t, inEtcd(t, etcd(t).ClientURL())...).RESTConfig())
}

// TestEtcd runs two servers that store a kind in one etcd: each serves the other's writes at once, objects stay the
// same over a restart, and the second of two writes of one state is a conflict.
func TestEtcd(t *testing.T) {
	t.Parallel()
	there := etcd(t)
	one, two := startWith(t, inEtcd(t, there.ClientURL())...), startWith(t, inEtcd(t, there.ClientURL())...)
	here, other := dynamicOf(t, one).Resource(vesselsGVR).Namespace("default"),
		dynamicOf(t, two).Resource(vesselsGVR).Namespace("default")
	made := created(t, here, "pequod", "Ishmael")
	seen := until(t, other, "pequod", "Ishmael")
	if seen.GetUID() != made.GetUID() || seen.GetCreationTimestamp().String() != made.GetCreationTimestamp().String() {
		t.Errorf("made %v, seen %v", made, seen)
	}
	changed(t, other, seen, "Stubb")
	until(t, here, "pequod", "Stubb")
	_ = unstructured.SetNestedField(made.Object, "Starbuck", "spec", "captain")
	if _, err := here.Update(t.Context(), made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a write of what another one has changed: %v", err)
	}
	if err := other.Delete(t.Context(), "pequod", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, here, "pequod", "")
	// Invalid objects are left out, and the server serves the rest.
	for key, value := range map[string]string{
		"default/bad": `{"spec":"none"}`, "default/good": `{"spec":{"captain":"Nemo"}}`,
	} {
		if _, err := there.Create(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	good := until(t, here, "good", "Nemo")
	if good.GetUID() == "" || good.GetKind() != "Vessel" {
		t.Errorf("not completed: %v", good)
	}
	three := dynamicOf(t, startWith(t, inEtcd(t, there.ClientURL())...)).Resource(vesselsGVR).Namespace("default")
	until(t, three, "good", "Nemo")
}

// asConfigMaps returns vessels that are ConfigMaps of a server.
func asConfigMaps(t *testing.T, server *testserver.Server) extension.Kind {
	return asConfigMapsAt(t, server.RESTConfig())
}

func asConfigMapsAt(t *testing.T, server *rest.Config) extension.Kind {
	kind := vessels.Kinds()[0]
	s, err := extension.Remote{
		Server: server, Resource: configMaps, Kind: "ConfigMap", Prefix: "vessel-",
		Labels: map[string]string{"example.com/kind": "vessel"},
		Load: func(there *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			captain, _, _ := unstructured.NestedString(there.Object, "data", "captain")
			return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"captain": captain}}}, nil
		},
		Save: func(obj, there *unstructured.Unstructured) error {
			captain, _, _ := unstructured.NestedString(obj.Object, "spec", "captain")
			return unstructured.SetNestedField(there.Object, captain, "data", "captain")
		},
	}.Storage()
	kind.Storage = in(t, s, err)
	return kind
}

// TestRemote stores vessels as ConfigMaps of another server: each side shows the writes of the other, fields outside
// the kind stay, and each side has its own metadata.
func TestRemote(t *testing.T) {
	t.Parallel()
	back := testserver.Start(t)
	front := startWith(t, asConfigMaps(t, back))
	here := dynamicOf(t, front).Resource(vesselsGVR).Namespace("default")
	there := dynamicOf(t, back).Resource(configMaps).Namespace("default")

	made := created(t, here, "pequod", "Ishmael")
	kept, err := there.Get(t.Context(), "vessel-pequod", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if captain, _, _ := unstructured.NestedString(kept.Object, "data", "captain"); captain != "Ishmael" ||
		kept.GetLabels()["example.com/kind"] != "vessel" || kept.GetUID() == made.GetUID() {
		t.Errorf("kept as %v", kept)
	}
	if _, err := there.Patch(t.Context(), "vessel-pequod", types.MergePatchType,
		[]byte(`{"data":{"captain":"Ahab","log":"a whale"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	seen := until(t, here, "pequod", "Ahab")
	if seen.GetUID() != made.GetUID() || len(seen.GetLabels()) > 0 || len(seen.GetAnnotations()) > 0 {
		t.Errorf("made %v, seen %v", made, seen)
	}
	changed(t, here, seen, "Starbuck")
	kept, err = there.Get(t.Context(), "vessel-pequod", metav1.GetOptions{})
	if log, _, _ := unstructured.NestedString(kept.Object, "data", "log"); err != nil || log != "a whale" {
		t.Errorf("the log says %q, %v", log, err)
	}
	// A finalizer here holds the object here, and does not reach the other server.
	if _, err := here.Patch(t.Context(), "pequod", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":["example.com/hold"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := here.Delete(t.Context(), "pequod", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	again := dynamicOf(t, startWith(t, asConfigMaps(t, back))).Resource(vesselsGVR).Namespace("default")
	after := until(t, again, "pequod", "Starbuck")
	if after.GetUID() != made.GetUID() || after.GetDeletionTimestamp() == nil || len(after.GetFinalizers()) != 1 {
		t.Errorf("another server shows %v", after)
	}
	if err := there.Delete(t.Context(), "vessel-pequod", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, here, "pequod", "")
	// Objects that other clients create there appear here, unless they do not belong to the kind.
	for _, name := range []string{"vessel-nautilus", "other"} {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"captain": "Nemo"},
			"metadata": map[string]any{"name": name, "labels": map[string]any{"example.com/kind": "vessel"}},
		}}
		if _, err := there.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, here, "nautilus", "Nemo")
	if list, err := here.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

func object(name, captain string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": vessels.Group + "/v1", "kind": "Vessel", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"captain": captain},
	}}
}

func created(t *testing.T, in dynamic.ResourceInterface, name, captain string) *unstructured.Unstructured {
	t.Helper()
	made, err := in.Create(t.Context(), object(name, captain), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func changed(t *testing.T, in dynamic.ResourceInterface, obj *unstructured.Unstructured, captain string) {
	t.Helper()
	_ = unstructured.SetNestedField(obj.Object, captain, "spec", "captain")
	if _, err := in.Update(t.Context(), obj, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// until watches until an object has a captain, or until the object is deleted if captain is "", and returns the object.
func until(t *testing.T, in dynamic.ResourceInterface, name, captain string) *unstructured.Unstructured {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	o := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	for {
		list, err := in.List(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) == 0 && captain == "" {
			return nil
		}
		if len(list.Items) == 1 {
			if have, _, _ := unstructured.NestedString(list.Items[0].Object, "spec", "captain"); have == captain {
				return &list.Items[0]
			}
		}
		o.ResourceVersion = list.GetResourceVersion()
		w, err := in.Watch(ctx, o)
		o.ResourceVersion = ""
		if err != nil {
			t.Fatal(err)
		}
		for event := range w.ResultChan() {
			if event.Type != watch.Bookmark {
				break // an object has changed: check again
			}
		}
		w.Stop()
		if ctx.Err() != nil {
			t.Fatalf("%s does not become %q: %v", name, captain, list.Items)
		}
	}
}
