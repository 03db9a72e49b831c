package control_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	events     = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	crontabs   = schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}
	fleets     = schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "fleets"}
)

// cluster is a fresh server with a client.
type cluster struct {
	*testing.T
	config *rest.Config
	client dynamic.Interface
}

func start(t *testing.T) *cluster {
	t.Helper()
	t.Parallel()
	config := testserver.Start(t).RESTConfig()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t, config, client}
}

func (c *cluster) in(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.client.Resource(gvr)
	}
	return c.client.Resource(gvr).Namespace(namespace)
}

func (c *cluster) create(gvr schema.GroupVersionResource, obj *unstructured.Unstructured) *unstructured.Unstructured {
	c.Helper()
	made, err := c.in(gvr, obj.GetNamespace()).Create(c.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return made
}

func (c *cluster) delete(
	gvr schema.GroupVersionResource, obj *unstructured.Unstructured, policy metav1.DeletionPropagation,
) {
	c.Helper()
	o := metav1.DeleteOptions{}
	if policy != "" {
		o.PropagationPolicy = &policy
	}
	if err := c.in(gvr, obj.GetNamespace()).Delete(c.Context(), obj.GetName(), o); err != nil {
		c.Fatal(err)
	}
}

// patience bounds every wait; it is reached only if a test fails.
const patience = 30 * time.Second

// until waits for the names of the objects of a resource to be those that are wanted, separated by spaces.
func (c *cluster) until(gvr schema.GroupVersionResource, namespace, want string) {
	c.Helper()
	c.when(gvr, namespace, "names "+want, func(objects map[string]*unstructured.Unstructured) bool {
		var names []string
		for name := range objects {
			names = append(names, name)
		}
		slices.Sort(names)
		return strings.Join(names, " ") == want
	})
}

// when waits for a condition on all objects of a resource, by name.
func (c *cluster) when(
	gvr schema.GroupVersionResource, namespace, what string, true_ func(map[string]*unstructured.Unstructured) bool,
) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	list, err := c.in(gvr, namespace).List(ctx, metav1.ListOptions{})
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
	changes, err := c.in(gvr, namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
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
	c.Fatalf("%s in %q: waited for %s, have %v", gvr.Resource, namespace, what, have)
}

// kindDefinition returns a definition of a kind of stable.example.com.
func kindDefinition(plural, kind, scope string) *unstructured.Unstructured {
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

// object returns an object with owners. An owner that comes with blocking set blocks its owner's deletion.
func object(apiVersion, kind, namespace, name string, owners ...ownerOf) *unstructured.Unstructured {
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

type ownerOf struct {
	*unstructured.Unstructured
	blocks bool
}

func owned(o *unstructured.Unstructured) ownerOf    { return ownerOf{o, false} }
func blocking(o *unstructured.Unstructured) ownerOf { return ownerOf{o, true} }

func configMap(name string, owners ...ownerOf) *unstructured.Unstructured {
	return object("v1", "ConfigMap", "default", name, owners...)
}

func secret(name string, owners ...ownerOf) *unstructured.Unstructured {
	return object("v1", "Secret", "default", name, owners...)
}

// mine leaves out what the server itself puts into namespaces.
func mine(objects map[string]*unstructured.Unstructured) (names []string) {
	for name := range objects {
		if name != "kube-root-ca.crt" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (c *cluster) untilMine(gvr schema.GroupVersionResource, namespace, want string) {
	c.Helper()
	c.when(gvr, namespace, "names "+want, func(objects map[string]*unstructured.Unstructured) bool {
		return strings.Join(mine(objects), " ") == want
	})
}

func TestBackgroundDeletion(t *testing.T) {
	c := start(t)
	c.create(definitions, kindDefinition("fleets", "Fleet", "Cluster"))
	c.create(definitions, kindDefinition("crontabs", "CronTab", "Namespaced"))
	fleet := c.create(fleets, object("stable.example.com/v1", "Fleet", "", "fleet"))
	tab := c.create(crontabs, object("stable.example.com/v1", "CronTab", "default", "tab", owned(fleet)))
	map1 := c.create(configMaps, configMap("a", blocking(tab)))
	other := c.create(configMaps, configMap("other"))
	c.create(secrets, secret("one-owner", owned(map1)))
	c.create(secrets, secret("two-owners", owned(map1), owned(other)))
	c.delete(fleets, fleet, "")
	c.until(crontabs, "default", "")
	c.untilMine(configMaps, "default", "other")
	c.until(secrets, "default", "two-owners")
	c.when(secrets, "default", "one reference", func(objects map[string]*unstructured.Unstructured) bool {
		refs := objects["two-owners"].GetOwnerReferences()
		return len(refs) == 1 && refs[0].UID == other.GetUID()
	})
}

func TestForegroundDeletion(t *testing.T) {
	c := start(t)
	owner := c.create(configMaps, configMap("owner"))
	held := secret("held", blocking(owner))
	held.SetFinalizers([]string{"example.com/hold"})
	c.create(secrets, held)
	free := secret("free", owned(owner))
	free.SetFinalizers([]string{"example.com/hold"})
	c.create(secrets, free)
	c.delete(configMaps, owner, metav1.DeletePropagationForeground)
	got, err := c.in(configMaps, "default").Get(t.Context(), "owner", metav1.GetOptions{})
	if err != nil || got.GetDeletionTimestamp() == nil ||
		!slices.Equal(got.GetFinalizers(), []string{metav1.FinalizerDeleteDependents}) {
		t.Fatalf("the owner after its deletion: %v, %v", got, err)
	}
	c.when(secrets, "default", "both deleted", func(objects map[string]*unstructured.Unstructured) bool {
		return objects["held"].GetDeletionTimestamp() != nil && objects["free"].GetDeletionTimestamp() != nil
	})
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := c.in(secrets, "default").Patch(t.Context(), "held", "application/merge-patch+json", patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.untilMine(configMaps, "default", "") // "free" does not block
	c.until(secrets, "default", "free")
}

// TestForegroundDeletionFromElsewhere has objects that cannot be owned claim that they block an owner's deletion: one of
// another namespace and one of none, neither of which will go away.
func TestForegroundDeletionFromElsewhere(t *testing.T) {
	c := start(t)
	c.create(namespaces, object("v1", "Namespace", "", "other"))
	c.create(definitions, kindDefinition("fleets", "Fleet", "Cluster"))
	owner := c.create(configMaps, configMap("owner"))
	forged := object("v1", "Secret", "other", "forged", blocking(owner))
	forged.SetFinalizers([]string{"example.com/hold"})
	c.create(secrets, forged)
	fleet := object("stable.example.com/v1", "Fleet", "", "forged", blocking(owner))
	fleet.SetFinalizers([]string{"example.com/hold"})
	c.create(fleets, fleet)
	c.create(secrets, secret("own", blocking(owner)))
	c.delete(configMaps, owner, metav1.DeletePropagationForeground)
	c.untilMine(configMaps, "default", "")
	c.until(secrets, "default", "")
	// Orphaning does not change them either.
	owner = c.create(configMaps, configMap("owner"))
	forged = object("v1", "Secret", "other", "forged-too", blocking(owner))
	forged.SetFinalizers([]string{"example.com/hold"})
	c.create(secrets, forged)
	c.delete(configMaps, owner, metav1.DeletePropagationOrphan)
	c.untilMine(configMaps, "default", "")
	c.when(secrets, "other", "the reference", func(objects map[string]*unstructured.Unstructured) bool {
		return len(objects["forged-too"].GetOwnerReferences()) == 1
	})
}

// TestForegroundDeletionUnblocked has the reference that blocks become one that does not.
func TestForegroundDeletionUnblocked(t *testing.T) {
	c := start(t)
	owner := c.create(configMaps, configMap("owner"))
	held := secret("held", blocking(owner))
	held.SetFinalizers([]string{"example.com/hold"})
	c.create(secrets, held)
	c.delete(configMaps, owner, metav1.DeletePropagationForeground)
	c.when(secrets, "default", "deleted", func(objects map[string]*unstructured.Unstructured) bool {
		return objects["held"].GetDeletionTimestamp() != nil
	})
	patch := []byte(`[{"op":"replace","path":"/metadata/ownerReferences/0/blockOwnerDeletion","value":false}]`)
	if _, err := c.in(secrets, "default").Patch(t.Context(), "held", "application/json-patch+json", patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.untilMine(configMaps, "default", "")
}

// TestForegroundDeletionGoesDown deletes a chain from its far end up.
func TestForegroundDeletionGoesDown(t *testing.T) {
	c := start(t)
	a := c.create(configMaps, configMap("a"))
	b := c.create(configMaps, configMap("b", blocking(a)))
	last := configMap("c", blocking(b))
	last.SetFinalizers([]string{"example.com/hold"})
	c.create(configMaps, last)
	c.delete(configMaps, a, metav1.DeletePropagationForeground)
	c.when(configMaps, "default", "all deleted", func(objects map[string]*unstructured.Unstructured) bool {
		for _, name := range []string{"a", "b", "c"} {
			if objects[name] == nil || objects[name].GetDeletionTimestamp() == nil {
				return false
			}
		}
		return true
	})
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := c.in(configMaps, "default").Patch(t.Context(), "c", "application/merge-patch+json", patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.untilMine(configMaps, "default", "")
}

// TestForegroundDeletionOfCircle deletes one of two objects that own each other.
func TestForegroundDeletionOfCircle(t *testing.T) {
	c := start(t)
	a := c.create(configMaps, configMap("a"))
	b := c.create(configMaps, configMap("b", blocking(a)))
	a.SetOwnerReferences(configMap("", blocking(b)).GetOwnerReferences())
	if _, err := c.in(configMaps, "default").Update(t.Context(), a, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.delete(configMaps, a, metav1.DeletePropagationForeground)
	c.untilMine(configMaps, "default", "")
}

func TestOrphan(t *testing.T) {
	c := start(t)
	owner := c.create(configMaps, configMap("owner"))
	for i := range 30 {
		c.create(secrets, secret(fmt.Sprintf("s-%02d", i), blocking(owner)))
	}
	c.delete(configMaps, owner, metav1.DeletePropagationOrphan)
	c.untilMine(configMaps, "default", "")
	c.when(secrets, "default", "30 without owners", func(objects map[string]*unstructured.Unstructured) bool {
		for _, s := range objects {
			if len(s.GetOwnerReferences()) > 0 {
				return false
			}
		}
		return len(objects) == 30
	})
}

// TestOrphanWithoutConversion: references are metadata, which nobody need convert.
func TestOrphanWithoutConversion(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, func(c *bowsprit.Config) {
		c.Conversions = map[schema.GroupKind]bowsprit.Conversion{
			{Group: "stable.example.com", Kind: "CronTab"}: func(context.Context, []map[string]any,
				string) ([]map[string]any, error) {
				return nil, errors.New("never")
			},
		}
	})
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, client: client}
	c.create(definitions, twoVersions("v1"))
	owner := c.create(configMaps, configMap("owner"))
	c.create(crontabs, object("stable.example.com/v1", "CronTab", "default", "tab", owned(owner)))
	c.store("v2")
	c.delete(configMaps, owner, metav1.DeletePropagationOrphan)
	c.untilMine(configMaps, "default", "")
	tab, err := c.in(crontabs, "default").Get(t.Context(), "tab", metav1.GetOptions{}) // still stored in v1
	if err != nil || len(tab.GetOwnerReferences()) > 0 {
		t.Errorf("%v, %v", tab, err)
	}
}

// TestOldOrphanOption sends what clients sent before there were policies; it overrides a finalizer of the object.
func TestOldOrphanOption(t *testing.T) {
	c := start(t)
	owner := configMap("owner")
	owner.SetFinalizers([]string{metav1.FinalizerOrphanDependents})
	owner = c.create(configMaps, owner)
	c.create(secrets, secret("s", owned(owner)))
	no := false
	//lint:ignore SA1019 the old option is what this is about
	if err := c.in(configMaps, "default").Delete(t.Context(), "owner",
		metav1.DeleteOptions{OrphanDependents: &no}); err != nil {
		t.Fatal(err)
	}
	c.untilMine(configMaps, "default", "")
	c.until(secrets, "default", "")

	owner = configMap("owner")
	owner.SetFinalizers([]string{metav1.FinalizerOrphanDependents})
	owner = c.create(configMaps, owner)
	c.create(secrets, secret("s", owned(owner)))
	c.delete(configMaps, owner, "") // the finalizer decides
	c.untilMine(configMaps, "default", "")
	c.when(secrets, "default", "no owner", func(objects map[string]*unstructured.Unstructured) bool {
		return objects["s"] != nil && len(objects["s"].GetOwnerReferences()) == 0
	})
}

func TestAbsentOwners(t *testing.T) {
	c := start(t)
	real := c.create(configMaps, configMap("real"))
	never := configMap("never")
	never.SetUID("00000000-0000-0000-0000-000000000001")
	impostor := configMap("real")
	impostor.SetUID("00000000-0000-0000-0000-000000000002")
	c.create(secrets, secret("never", owned(never)))
	c.create(secrets, secret("other-uid", owned(impostor)))
	c.create(secrets, secret("mixed", owned(real), owned(never)))
	c.until(secrets, "default", "mixed")
	c.when(secrets, "default", "one reference", func(objects map[string]*unstructured.Unstructured) bool {
		refs := objects["mixed"].GetOwnerReferences()
		return len(refs) == 1 && refs[0].UID == real.GetUID()
	})
}

// TestOwnerOfUnknownKind keeps an object until its owner's kind is served, and then finds that there is no such owner.
func TestOwnerOfUnknownKind(t *testing.T) {
	c := start(t)
	owner := object("stable.example.com/v1", "CronTab", "default", "tab")
	owner.SetUID("00000000-0000-0000-0000-000000000001")
	c.create(secrets, secret("s", owned(owner)))
	absent := configMap("absent")
	absent.SetUID("00000000-0000-0000-0000-000000000002")
	c.create(secrets, secret("t", owned(absent)))
	c.until(secrets, "default", "s")
	c.create(definitions, kindDefinition("crontabs", "CronTab", "Namespaced"))
	c.until(secrets, "default", "")
}

// TestOwnersGoWithTheirKind deletes a definition; what its objects own goes too.
func TestOwnersGoWithTheirKind(t *testing.T) {
	c := start(t)
	def := c.create(definitions, kindDefinition("crontabs", "CronTab", "Namespaced"))
	tab := c.create(crontabs, object("stable.example.com/v1", "CronTab", "default", "tab"))
	c.create(secrets, secret("s", owned(tab)))
	c.delete(definitions, def, "")
	c.until(secrets, "default", "")
	c.until(definitions, "", "")
}

func TestForeignOwners(t *testing.T) {
	c := start(t)
	c.create(namespaces, object("v1", "Namespace", "", "other"))
	c.create(definitions, kindDefinition("fleets", "Fleet", "Cluster"))
	owner := c.create(configMaps, configMap("owner"))
	stranger := c.create(secrets, object("v1", "Secret", "other", "s", owned(owner)))
	fleet := c.create(fleets, object("stable.example.com/v1", "Fleet", "", "fleet", owned(owner)))
	c.until(secrets, "other", "")
	check := func(namespace string, about *unstructured.Unstructured) {
		t.Helper()
		want := fmt.Sprintf(
			"ownerRef [v1/ConfigMap, namespace: %s, name: owner, uid: %s] does not exist in namespace %q",
			about.GetNamespace(), owner.GetUID(), about.GetNamespace())
		c.when(events, namespace, want, func(objects map[string]*unstructured.Unstructured) bool {
			for _, e := range objects {
				uid, _, _ := unstructured.NestedString(e.Object, "involvedObject", "uid")
				if uid == string(about.GetUID()) && e.Object["message"] == want &&
					e.Object["reason"] == "OwnerRefInvalidNamespace" && e.Object["type"] == corev1.EventTypeWarning {
					return true
				}
			}
			return false
		})
	}
	check("other", stranger)
	check("default", fleet)
	if _, err := c.in(fleets, "").Get(t.Context(), "fleet", metav1.GetOptions{}); err != nil {
		t.Errorf("a cluster-scoped object with a namespaced owner is left alone in Kubernetes: %v", err)
	}
}

// TestManyDependents deletes an owner with a crowd of dependents.
func TestManyDependents(t *testing.T) {
	c := start(t)
	count := 1000
	if testing.Short() {
		count = 200
	}
	owner := c.create(configMaps, configMap("owner"))
	var wg sync.WaitGroup
	next := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range next {
				if _, err := c.in(secrets, "default").Create(t.Context(),
					secret(fmt.Sprintf("s-%05d", i), blocking(owner)), metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	wg.Wait()
	c.delete(configMaps, owner, metav1.DeletePropagationForeground)
	began := time.Now()
	c.untilMine(configMaps, "default", "")
	t.Logf("%d dependents were gone after %v", count, time.Since(began).Round(time.Millisecond))
	c.until(secrets, "default", "")
}
