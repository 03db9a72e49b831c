package extension_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/extension"
	"github.com/bowsprit/bowsprit/test/vessels"
	"github.com/bowsprit/bowsprit/testserver"
)

// wire carries connections to an address until the test cuts it.
type wire struct {
	net.Listener
	to string

	mu    sync.Mutex
	isCut bool
	ends  map[net.Conn]bool
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: listener, to: to, ends: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { w.carry(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		w.cut()
		running.Wait()
	})
	return w
}

// add notes one end of a connection, and reports whether it may be used.
func (w *wire) add(conn net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isCut {
		conn.Close()
		return false
	}
	w.ends[conn] = true
	return true
}

func (w *wire) carry(near net.Conn) {
	if !w.add(near) {
		return
	}
	defer near.Close()
	far, err := net.Dial("tcp", w.to)
	if err != nil || !w.add(far) {
		return
	}
	defer far.Close()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(near, far)
		near.Close()
	}()
	_, _ = io.Copy(far, near)
	far.Close()
	<-back
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ends, near)
	delete(w.ends, far)
}

// cut ends all connections. Until mend, it also ends new ones at once.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = true
	for conn := range w.ends {
		conn.Close()
	}
	clear(w.ends)
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = false
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// TestCut repeatedly cuts the connections between a server and the storage of its kind, while another server writes
// there. Reads continue meanwhile, and an older watch shows each change afterwards.
func TestCut(t *testing.T) {
	t.Parallel()
	t.Run("etcd", func(t *testing.T) {
		t.Parallel()
		there := etcd(t).ClientURL()
		w := newWire(t, hostOf(t, there))
		outlastCuts(t, w, startWith(t, inEtcd(t, "http://"+w.Addr().String())...), startWith(t, inEtcd(t, there)...))
	})
	t.Run("remote", func(t *testing.T) {
		t.Parallel()
		back := testserver.Start(t)
		w := newWire(t, hostOf(t, back.RESTConfig().Host))
		through := rest.CopyConfig(back.RESTConfig())
		through.Host = "https://" + w.Addr().String()
		outlastCuts(t, w, startWith(t, asConfigMapsAt(t, through)), startWith(t, asConfigMaps(t, back)))
	})
}

// outlastCuts lets one server, which is behind the wire, follow another server's writes to the same storage.
func outlastCuts(t *testing.T, w *wire, one, other *testserver.Server) {
	t.Helper()
	here := dynamicOf(t, one).Resource(vesselsGVR).Namespace("default")
	there := dynamicOf(t, other).Resource(vesselsGVR).Namespace("default")
	created(t, there, "pequod", "Ishmael")
	seen := until(t, here, "pequod", "Ishmael")
	follow, err := here.Watch(t.Context(), metav1.ListOptions{ResourceVersion: seen.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer follow.Stop()
	for round, captain := range []string{"Starbuck", "Stubb", "Flask"} {
		w.cut()
		if _, err := here.Get(t.Context(), "pequod", metav1.GetOptions{}); err != nil {
			t.Errorf("a read without the storage: %v", err)
		}
		if round == 0 {
			refused(t, here)
		}
		now, err := there.Get(t.Context(), "pequod", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		changed(t, there, now, captain)
		w.mend()
		limit := time.After(2 * time.Minute)
		for got := ""; got != captain; {
			select {
			case event, ok := <-follow.ResultChan():
				if !ok {
					t.Fatal("the watch has ended")
				}
				obj, _ := event.Object.(*unstructured.Unstructured)
				if obj == nil {
					t.Fatalf("the watch says %v", event.Object)
				}
				got, _, _ = unstructured.NestedString(obj.Object, "spec", "captain")
			case <-limit:
				t.Fatalf("the watch does not show %s", captain)
			}
		}
	}
	// Writes work again too, with the current state.
	eventually(t, "a write", func(ctx context.Context) error {
		_, err := here.Patch(ctx, "pequod", types.MergePatchType, []byte(`{"spec":{"captain":"Peleg"}}`),
			metav1.PatchOptions{})
		return err
	})
	until(t, there, "pequod", "Peleg")
}

// refused requires that a write without access to the storage fails with an error of the server, and changes nothing.
func refused(t *testing.T, in dynamic.ResourceInterface) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err := in.Create(ctx, object("ghost", "Nobody"), metav1.CreateOptions{})
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code < 500 {
		t.Errorf("a write without the storage: %v", err)
	}
	if _, err := in.Get(t.Context(), "ghost", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what could not be written: %v", err)
	}
}

const boats = `{"metadata":{"name":"boats.example.net"},"spec":{"group":"example.net","scope":"Namespaced",
	"names":{"plural":"boats","kind":"Boat"},"versions":[{"name":"v1","served":true,"storage":true,
	"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object",
	"x-kubernetes-preserve-unknown-fields":true}}}]}}`

var boatsGVR = schema.GroupVersionResource{Group: "example.net", Version: "v1", Resource: "boats"}

func defineBoats(t *testing.T, s *testserver.Server) dynamic.ResourceInterface {
	t.Helper()
	var definition unstructured.Unstructured
	if err := json.Unmarshal([]byte(boats), &definition.Object); err != nil {
		t.Fatal(err)
	}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	d := dynamicOf(t, s)
	if _, err := d.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}).Create(t.Context(), &definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return d.Resource(boatsGVR).Namespace("default")
}

// TestRemoteStatus stores vessels as objects of a kind with the subresource status. Each half is written separately, on
// both sides.
func TestRemoteStatus(t *testing.T) {
	t.Parallel()
	back := testserver.Start(t)
	there := defineBoats(t, back)
	kind := vessels.Kinds()[0]
	s, err := extension.Remote{
		Server: back.RESTConfig(), Resource: boatsGVR, Kind: "Boat", Status: true,
	}.Storage()
	kind.Storage = in(t, s, err)
	here := dynamicOf(t, startWith(t, kind)).Resource(vesselsGVR).Namespace("default")

	made := created(t, here, "pequod", "Ishmael")
	_ = unstructured.SetNestedField(made.Object, "at sea", "status", "port")
	made, err = here.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	is := func(where string, obj *unstructured.Unstructured, captain, position string) {
		t.Helper()
		gotCaptain, _, _ := unstructured.NestedString(obj.Object, "spec", "captain")
		gotPosition, _, _ := unstructured.NestedString(obj.Object, "status", "port")
		if gotCaptain != captain || gotPosition != position {
			t.Errorf("%s: captain %s, %s; want %s, %s", where, gotCaptain, gotPosition, captain, position)
		}
	}
	is("here", made, "Ishmael", "at sea")
	kept, err := there.Get(t.Context(), "pequod", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	is("there", kept, "Ishmael", "at sea")

	// A change of the other half leaves it.
	changed(t, here, made, "Peleg")
	if kept, err = there.Get(t.Context(), "pequod", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	is("there, after a change of spec", kept, "Peleg", "at sea")

	// And the other way: a controller there writes the status.
	_ = unstructured.SetNestedField(kept.Object, "sunk", "status", "port")
	if _, err := there.UpdateStatus(t.Context(), kept, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a status that was written there", func(ctx context.Context) error {
		obj, err := here.Get(ctx, "pequod", metav1.GetOptions{})
		if err == nil {
			if position, _, _ := unstructured.NestedString(obj.Object, "status", "port"); position != "sunk" {
				return io.EOF // not yet
			}
			is("here, after a change there", obj, "Peleg", "sunk")
		}
		return err
	})
}
