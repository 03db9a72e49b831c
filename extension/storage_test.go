package extension_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/extension"
	"github.com/bowsprit/bowsprit/test/vessels"
	"github.com/bowsprit/bowsprit/testserver"
)

// shelf is a Storage in memory with other writers. The label "version" distinguishes states of an object; it stands for
// a version column of a database.
type shelf struct {
	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	refuse  error
}

func (s *shelf) key(obj *unstructured.Unstructured) string {
	return obj.GetNamespace() + "/" + obj.GetName()
}

func (s *shelf) List(context.Context) iter.Seq2[*unstructured.Unstructured, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.objects)
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for _, obj := range all {
			if !yield(obj, nil) {
				return
			}
		}
	}
}

func (s *shelf) Write(_ context.Context, old, now *unstructured.Unstructured) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return s.refuse
	}
	key := ""
	if now != nil {
		key = s.key(now)
	} else {
		key = s.key(old)
	}
	have := s.objects[key]
	if (have == nil) != (old == nil) || have != nil && have.GetLabels()["version"] != old.GetLabels()["version"] {
		return extension.ErrConflict
	}
	if now == nil {
		delete(s.objects, key)
	} else {
		s.objects[key] = now.DeepCopy()
	}
	return nil
}

// put is a write by another program.
func (s *shelf) put(obj *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[s.key(obj)] = obj
}

func (s *shelf) captain(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj := s.objects["default/"+name]
	if obj == nil {
		return "none"
	}
	captain, _, _ := unstructured.NestedString(obj.Object, "spec", "captain")
	return captain
}

func ship(name, captain, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": name, "namespace": "default", "labels": map[string]any{"version": version},
		},
		"spec": map[string]any{"captain": captain},
	}}
}

// TestStorageTable runs the table of client tests on kinds with storages of their own.
func TestStorageTable(t *testing.T) {
	t.Parallel()
	all := vessels.Kinds()
	for i := range all {
		all[i].Storage = &shelf{objects: map[string]*unstructured.Unstructured{}}
	}
	vessels.Run(t, startWith(t, all...).RESTConfig())
}

func startWith(t *testing.T, all ...extension.Kind) *testserver.Server {
	t.Helper()
	kinds, err := extension.In(all...)
	if err != nil {
		t.Fatal(err)
	}
	return testserver.Start(t, func(c *bowsprit.Config) { c.Extensions = append(c.Extensions, kinds) })
}

// TestStorage checks that the initial objects of a storage are served, that writes go there first, and that the server
// finds other programs' changes.
func TestStorage(t *testing.T) {
	t.Parallel()
	s := &shelf{objects: map[string]*unstructured.Unstructured{}}
	s.put(ship("old", "Nemo", "1"))
	kind := vessels.Kinds()[0]
	kind.Storage, kind.Poll = s, 10*time.Millisecond
	d, err := dynamic.NewForConfig(startWith(t, kind).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ships := d.Resource(schema.GroupVersionResource{Group: vessels.Group, Version: "v1", Resource: "vessels"}).
		Namespace("default")
	old, err := ships.Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil || old.GetUID() == "" || old.GetAPIVersion() != vessels.Group+"/v1" {
		t.Fatalf("%v %v", old, err)
	}
	fresh := ship("new", "Sindbad", "1")
	fresh.SetAPIVersion(vessels.Group + "/v1")
	fresh.SetKind("Vessel")
	if _, err := ships.Create(t.Context(), fresh, metav1.CreateOptions{}); err != nil || s.captain("new") != "Sindbad" {
		t.Errorf("%v, the storage has %s", err, s.captain("new"))
	}
	// Another program changes an object: the server shows the change, with the same uid.
	s.put(ship("old", "Aronnax", "2"))
	if err := wait.PollUntilContextCancel(t.Context(), 5*time.Millisecond, true,
		func(ctx context.Context) (bool, error) {
			now, err := ships.Get(ctx, "old", metav1.GetOptions{})
			if err == nil && now.GetUID() != old.GetUID() {
				err = errors.New("it has another uid")
			}
			captain, _, _ := unstructured.NestedString(now.Object, "spec", "captain")
			return captain == "Aronnax", err
		}); err != nil {
		t.Error(err)
	}
	_ = unstructured.SetNestedField(old.Object, "Land", "spec", "captain")
	if _, err := ships.Update(t.Context(), old, metav1.UpdateOptions{}); !apierrors.IsConflict(err) ||
		s.captain("old") != "Aronnax" {
		t.Errorf("an update of what others have changed: %v, the storage has %s", err, s.captain("old"))
	}
	// A storage that refuses a write keeps it out of the log too.
	s.mu.Lock()
	s.refuse = errors.New("disk full")
	s.mu.Unlock()
	if err := ships.Delete(t.Context(), "new", metav1.DeleteOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("the deletion: %v", err)
	}
	if _, err := ships.Get(t.Context(), "new", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// TestReadOnly checks that clients can read and watch objects from a function, but not change them.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	kind := vessels.Kinds()[0]
	kind.Storage = extension.ReadOnly((&shelf{objects: map[string]*unstructured.Unstructured{
		"default/a": ship("a", "Cook", "1"),
	}}).List)
	d, err := dynamic.NewForConfig(startWith(t, kind).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ships := d.Resource(schema.GroupVersionResource{Group: vessels.Group, Version: "v1", Resource: "vessels"}).
		Namespace("default")
	if _, err := ships.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if err := ships.Delete(t.Context(), "a", metav1.DeleteOptions{}); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("the deletion: %v", err)
	}
}
