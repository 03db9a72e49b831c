// Package controltest gives tests of controllers a server of their own and a client that waits for the controllers'
// work.
package controltest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// The resources that tests are about.
var (
	Definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	Namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	ConfigMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	Secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	Pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	Nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	Events     = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	Crontabs   = schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}
	Fleets     = schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "fleets"}
)

// Cluster is a fresh server with a client.
type Cluster struct {
	*testing.T
	Config *rest.Config
	Client dynamic.Interface
}

// Start starts a server. The test runs in parallel with others.
func Start(t *testing.T, configure ...func(*bowsprit.Config)) *Cluster {
	t.Helper()
	t.Parallel()
	config := testserver.Start(t, configure...).RESTConfig()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &Cluster{t, config, client}
}

// In returns the client of a resource in a namespace, or in none.
func (c *Cluster) In(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.Client.Resource(gvr)
	}
	return c.Client.Resource(gvr).Namespace(namespace)
}

// Create creates an object.
func (c *Cluster) Create(gvr schema.GroupVersionResource, obj *unstructured.Unstructured) *unstructured.Unstructured {
	c.Helper()
	made, err := c.In(gvr, obj.GetNamespace()).Create(c.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return made
}

// Delete deletes an object, by the kind's own policy if policy is empty.
func (c *Cluster) Delete(
	gvr schema.GroupVersionResource, obj *unstructured.Unstructured, policy metav1.DeletionPropagation,
) {
	c.Helper()
	o := metav1.DeleteOptions{}
	if policy != "" {
		o.PropagationPolicy = &policy
	}
	if err := c.In(gvr, obj.GetNamespace()).Delete(c.Context(), obj.GetName(), o); err != nil {
		c.Fatal(err)
	}
}

// Patience bounds every wait; it is reached only if a test fails.
const Patience = 2 * time.Minute

// Until waits until a resource has objects with exactly the wanted names, separated by spaces.
func (c *Cluster) Until(gvr schema.GroupVersionResource, namespace, want string) {
	c.Helper()
	c.When(gvr, namespace, "names "+want, func(objects map[string]*unstructured.Unstructured) bool {
		var names []string
		for name := range objects {
			names = append(names, name)
		}
		slices.Sort(names)
		return strings.Join(names, " ") == want
	})
}

// When waits for a condition on all objects of a resource, by name.
func (c *Cluster) When(
	gvr schema.GroupVersionResource, namespace, desc string, true_ func(map[string]*unstructured.Unstructured) bool,
) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), Patience)
	defer cancel()
	list, err := c.In(gvr, namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	have := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		have[list.Items[i].GetName()] = &list.Items[i]
	}
	if true_(have) {
		return
	}
	changes, err := c.In(gvr, namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		c.Fatal(err)
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		obj, ok := change.Object.(*unstructured.Unstructured)
		if !ok {
			c.Fatalf("watch: %v", change.Object)
		}
		if have[obj.GetName()] = obj; change.Type == "DELETED" {
			delete(have, obj.GetName())
		}
		if true_(have) {
			return
		}
	}
	c.Fatalf("%s in %q: waited for %s, have %v", gvr.Resource, namespace, desc, have)
}

// Definition returns a definition of a kind of stable.example.com.
func Definition(plural, kind, scope string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".stable.example.com"},
		"spec": map[string]any{
			"group": "stable.example.com", "scope": scope,
			"names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{
					"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				}}},
		},
	}}
}

// Object returns an object with owners. The field blocking of an owner sets blockOwnerDeletion in
// its reference.
func Object(apiVersion, kind, namespace, name string, owners ...Owner) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	obj.SetName(name)
	obj.SetNamespace(namespace)
	var refs []metav1.OwnerReference
	for _, o := range owners {
		ref := metav1.OwnerReference{
			APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID(),
		}
		if o.blocks {
			ref.BlockOwnerDeletion = &o.blocks
		}
		refs = append(refs, ref)
	}
	if len(refs) > 0 {
		obj.SetOwnerReferences(refs)
	}
	return obj
}

// Owner is an owner of a new object.
type Owner struct {
	*unstructured.Unstructured
	blocks bool
}

// Owned makes an Owner without blockOwnerDeletion.
func Owned(o *unstructured.Unstructured) Owner { return Owner{o, false} }

// Blocking makes an Owner with blockOwnerDeletion.
func Blocking(o *unstructured.Unstructured) Owner { return Owner{o, true} }

// ConfigMap returns a ConfigMap in the namespace default.
func ConfigMap(name string, owners ...Owner) *unstructured.Unstructured {
	return Object("v1", "ConfigMap", "default", name, owners...)
}

// Secret returns a Secret in the namespace default.
func Secret(name string, owners ...Owner) *unstructured.Unstructured {
	return Object("v1", "Secret", "default", name, owners...)
}

// Mine omits objects that the server itself creates in namespaces.
func Mine(objects map[string]*unstructured.Unstructured) (names []string) {
	for name := range objects {
		if name != "kube-root-ca.crt" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// UntilMine is Until without objects that the server itself creates.
func (c *Cluster) UntilMine(gvr schema.GroupVersionResource, namespace, want string) {
	c.Helper()
	c.When(gvr, namespace, "names "+want, func(objects map[string]*unstructured.Unstructured) bool {
		return strings.Join(Mine(objects), " ") == want
	})
}

// PodOn returns a pod that a scheduler has put on a node, "" for none.
func PodOn(node, namespace, name string) *unstructured.Unstructured {
	pod := Object("v1", "Pod", namespace, name)
	pod.Object["spec"] = map[string]any{
		"nodeName": node, "containers": []any{map[string]any{"name": "c", "image": "i"}},
	}
	return pod
}
