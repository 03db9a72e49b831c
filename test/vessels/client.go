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

// client is one test with a namespace of its own.
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

// vessel returns a vessel of a captain.
func vessel(name, captain string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Group + "/v1", "kind": "Vessel", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"captain": captain},
	}}
}

// harbour returns a harbour whose name no other test has.
func (c *client) harbour(name, country string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Group + "/v1", "kind": "Harbour", "metadata": map[string]any{"name": c.namespace + "-" + name},
		"spec": map[string]any{"country": country},
	}}
}

// made returns what an operation has made, or ends the test.
func (c *client) made(obj *unstructured.Unstructured, err error) *unstructured.Unstructured {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
	return obj
}

// is compares a field with what it must be.
func (c *client) is(obj *unstructured.Unstructured, want any, path ...string) {
	c.Helper()
	got, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.Errorf("%s %s: %v is %v, want %v", obj.GetKind(), obj.GetName(), path, got, want)
	}
}

// refused wants an error that a function of apierrors knows.
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

// WaitAvailable returns when the server that config reaches sends requests to that of the group.
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
