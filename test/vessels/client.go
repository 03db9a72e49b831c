package vessels

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// client runs one test in its own namespace.
type client struct {
	*testing.T
	ctx       context.Context
	config    *rest.Config
	dynamic   dynamic.Interface
	namespace string
}

func newClient(ctx context.Context, t *testing.T, config *rest.Config) *client {
	t.Helper()
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := d.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(ctx,
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "sea-"},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &client{T: t, ctx: ctx, config: config, dynamic: d, namespace: ns.GetName()}
}

func gvr(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: Group, Version: "v1", Resource: resource}
}

func (c *client) vessels() dynamic.ResourceInterface {
	return c.dynamic.Resource(gvr("vessels")).Namespace(c.namespace)
}

func (c *client) harbours() dynamic.ResourceInterface { return c.dynamic.Resource(gvr("harbours")) }

// vessel returns a vessel with a captain.
func vessel(name, captain string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Group + "/v1", "kind": "Vessel", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"captain": captain},
	}}
}

// harbour returns a harbour with a name that no other test uses.
func (c *client) harbour(name, country string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Group + "/v1", "kind": "Harbour", "metadata": map[string]any{"name": c.namespace + "-" + name},
		"spec": map[string]any{"country": country},
	}}
}

// made returns the result of an operation, or ends the test.
func (c *client) made(obj *unstructured.Unstructured, err error) *unstructured.Unstructured {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
	return obj
}

// is compares a field with its expected value.
func (c *client) is(obj *unstructured.Unstructured, want any, path ...string) {
	c.Helper()
	got, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.Errorf("%s %s: %v is %v, want %v", obj.GetKind(), obj.GetName(), path, got, want)
	}
}

// refused expects an error that a function of apierrors matches.
func (c *client) refused(err error, is func(error) bool, texts ...string) {
	c.Helper()
	if err == nil || !is(err) {
		c.Fatalf("the error is %v", err)
	}
	for _, text := range texts {
		if !contains(err.Error(), text) {
			c.Errorf("%q does not say %q", err, text)
		}
	}
}

// WaitAvailable waits until the server of config forwards requests to the server of the group.
func WaitAvailable(t *testing.T, config *rest.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	services := d.Resource(
		schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	var last any
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		obj, err := services.Get(ctx, "v1."+Group, metav1.GetOptions{})
		if err != nil {
			last = err
			return false, nil
		}
		conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		last = conditions
		for _, c := range conditions {
			if c, _ := c.(map[string]any); c["type"] == "Available" && c["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatalf("the APIService is not available: %v: %v", err, last)
	}
}
