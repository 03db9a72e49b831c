package control_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

func TestBackgroundDeletion(t *testing.T) {
	c := start(t)
	c.Create(controltest.Definitions, controltest.Definition("fleets", "Fleet", "Cluster"))
	c.Create(controltest.Definitions, controltest.Definition("crontabs", "CronTab", "Namespaced"))
	fleet := c.Create(controltest.Fleets, controltest.Object("stable.example.com/v1", "Fleet", "", "fleet"))
	tab := c.Create(controltest.Crontabs,
		controltest.Object("stable.example.com/v1", "CronTab", "default", "tab", controltest.Owned(fleet)))
	map1 := c.Create(controltest.ConfigMaps, controltest.ConfigMap("a", controltest.Blocking(tab)))
	other := c.Create(controltest.ConfigMaps, controltest.ConfigMap("other"))
	c.Create(controltest.Secrets, controltest.Secret("one-owner", controltest.Owned(map1)))
	c.Create(controltest.Secrets, controltest.Secret("two-owners", controltest.Owned(map1), controltest.Owned(other)))
	c.Delete(controltest.Fleets, fleet, "")
	c.Until(controltest.Crontabs, "default", "")
	c.UntilMine(controltest.ConfigMaps, "default", "other")
	c.Until(controltest.Secrets, "default", "two-owners")
	c.When(controltest.Secrets, "default", "one reference", func(objects map[string]*unstructured.Unstructured) bool {
		refs := objects["two-owners"].GetOwnerReferences()
		return len(refs) == 1 && refs[0].UID == other.GetUID()
	})
}

func TestForegroundDeletion(t *testing.T) {
	c := start(t)
	owner := c.Create(controltest.ConfigMaps, controltest.ConfigMap("owner"))
	held := controltest.Secret("held", controltest.Blocking(owner))
	held.SetFinalizers([]string{"example.com/hold"})
	c.Create(controltest.Secrets, held)
	free := controltest.Secret("free", controltest.Owned(owner))
	free.SetFinalizers([]string{"example.com/hold"})
	c.Create(controltest.Secrets, free)
	c.Delete(controltest.ConfigMaps, owner, metav1.DeletePropagationForeground)
	got, err := c.In(controltest.ConfigMaps, "default").Get(t.Context(), "owner", metav1.GetOptions{})
	if err != nil || got.GetDeletionTimestamp() == nil ||
		!slices.Equal(got.GetFinalizers(), []string{metav1.FinalizerDeleteDependents}) {
		t.Fatalf("the owner after its deletion: %v, %v", got, err)
	}
	c.When(controltest.Secrets, "default", "both deleted", func(objects map[string]*unstructured.Unstructured) bool {
		return objects["held"].GetDeletionTimestamp() != nil && objects["free"].GetDeletionTimestamp() != nil
	})
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := c.In(controltest.Secrets, "default").Patch(t.Context(), "held", "application/merge-patch+json", patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.UntilMine(controltest.ConfigMaps, "default", "") // "free" does not block
	c.Until(controltest.Secrets, "default", "free")
}

// TestForegroundDeletionFromElsewhere checks that objects that cannot have an owner do not block its deletion: one in
// another namespace and one without a namespace, neither of which will be deleted.
func TestForegroundDeletionFromElsewhere(t *testing.T) {
	c := start(t)
	c.Create(controltest.Namespaces, controltest.Object("v1", "Namespace", "", "other"))
	c.Create(controltest.Definitions, controltest.Definition("fleets", "Fleet", "Cluster"))
	owner := c.Create(controltest.ConfigMaps, controltest.ConfigMap("owner"))
	forged := controltest.Object("v1", "Secret", "other", "forged", controltest.Blocking(owner))
	forged.SetFinalizers([]string{"example.com/hold"})
	c.Create(controltest.Secrets, forged)
	fleet := controltest.Object("stable.example.com/v1", "Fleet", "", "forged", controltest.Blocking(owner))
	fleet.SetFinalizers([]string{"example.com/hold"})
	c.Create(controltest.Fleets, fleet)
	c.Create(controltest.Secrets, controltest.Secret("own", controltest.Blocking(owner)))
	c.Delete(controltest.ConfigMaps, owner, metav1.DeletePropagationForeground)
	c.UntilMine(controltest.ConfigMaps, "default", "")
	c.Until(controltest.Secrets, "default", "")
	// Orphaning does not change them either.
	owner = c.Create(controltest.ConfigMaps, controltest.ConfigMap("owner"))
	forged = controltest.Object("v1", "Secret", "other", "forged-too", controltest.Blocking(owner))
	forged.SetFinalizers([]string{"example.com/hold"})
	c.Create(controltest.Secrets, forged)
	c.Delete(controltest.ConfigMaps, owner, metav1.DeletePropagationOrphan)
	c.UntilMine(controltest.ConfigMaps, "default", "")
	c.When(controltest.Secrets, "other", "the reference", func(objects map[string]*unstructured.Unstructured) bool {
		return len(objects["forged-too"].GetOwnerReferences()) == 1
	})
}

// TestForegroundDeletionUnblocked turns a blocking reference into one that does not block.
func TestForegroundDeletionUnblocked(t *testing.T) {
	c := start(t)
	owner := c.Create(controltest.ConfigMaps, controltest.ConfigMap("owner"))
	held := controltest.Secret("held", controltest.Blocking(owner))
	held.SetFinalizers([]string{"example.com/hold"})
	c.Create(controltest.Secrets, held)
	c.Delete(controltest.ConfigMaps, owner, metav1.DeletePropagationForeground)
	c.When(controltest.Secrets, "default", "deleted", func(objects map[string]*unstructured.Unstructured) bool {
		return objects["held"].GetDeletionTimestamp() != nil
	})
	patch := []byte(`[{"op":"replace","path":"/metadata/ownerReferences/0/blockOwnerDeletion","value":false}]`)
	if _, err := c.In(controltest.Secrets, "default").Patch(t.Context(), "held", "application/json-patch+json", patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.UntilMine(controltest.ConfigMaps, "default", "")
}

// TestForegroundDeletionGoesDown deletes a chain from its far end up.
func TestForegroundDeletionGoesDown(t *testing.T) {
	c := start(t)
	a := c.Create(controltest.ConfigMaps, controltest.ConfigMap("a"))
	b := c.Create(controltest.ConfigMaps, controltest.ConfigMap("b", controltest.Blocking(a)))
	last := controltest.ConfigMap("c", controltest.Blocking(b))
	last.SetFinalizers([]string{"example.com/hold"})
	c.Create(controltest.ConfigMaps, last)
	c.Delete(controltest.ConfigMaps, a, metav1.DeletePropagationForeground)
	c.When(controltest.ConfigMaps, "default", "all deleted", func(objects map[string]*unstructured.Unstructured) bool {
		for _, name := range []string{"a", "b", "c"} {
			if objects[name] == nil || objects[name].GetDeletionTimestamp() == nil {
				return false
			}
		}
		return true
	})
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := c.In(controltest.ConfigMaps, "default").Patch(t.Context(), "c", "application/merge-patch+json", patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.UntilMine(controltest.ConfigMaps, "default", "")
}

// TestForegroundDeletionOfCircle deletes one of two objects that own each other.
func TestForegroundDeletionOfCircle(t *testing.T) {
	c := start(t)
	a := c.Create(controltest.ConfigMaps, controltest.ConfigMap("a"))
	b := c.Create(controltest.ConfigMaps, controltest.ConfigMap("b", controltest.Blocking(a)))
	a.SetOwnerReferences(controltest.ConfigMap("", controltest.Blocking(b)).GetOwnerReferences())
	if _, err := c.In(controltest.ConfigMaps, "default").Update(t.Context(), a, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Delete(controltest.ConfigMaps, a, metav1.DeletePropagationForeground)
	c.UntilMine(controltest.ConfigMaps, "default", "")
}

func TestOrphan(t *testing.T) {
	c := start(t)
	owner := c.Create(controltest.ConfigMaps, controltest.ConfigMap("owner"))
	for i := range 30 {
		c.Create(controltest.Secrets, controltest.Secret(fmt.Sprintf("s-%02d", i), controltest.Blocking(owner)))
	}
	c.Delete(controltest.ConfigMaps, owner, metav1.DeletePropagationOrphan)
	c.UntilMine(controltest.ConfigMaps, "default", "")
	c.When(controltest.Secrets, "default", "30 without owners",
		func(objects map[string]*unstructured.Unstructured) bool {
			for _, s := range objects {
				if len(s.GetOwnerReferences()) > 0 {
					return false
				}
			}
			return len(objects) == 30
		})
}

// TestOrphanWithoutConversion checks that changing references, which are metadata, needs no conversion.
func TestOrphanWithoutConversion(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t, func(c *bowsprit.Config) {
		c.Versions.Conversions = map[schema.GroupKind]bowsprit.Conversion{
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
	c := &cluster{&controltest.Cluster{T: t, Client: client}}
	c.Create(controltest.Definitions, twoVersions("v1"))
	owner := c.Create(controltest.ConfigMaps, controltest.ConfigMap("owner"))
	c.Create(controltest.Crontabs,
		controltest.Object("stable.example.com/v1", "CronTab", "default", "tab", controltest.Owned(owner)))
	c.store("v2")
	c.Delete(controltest.ConfigMaps, owner, metav1.DeletePropagationOrphan)
	c.UntilMine(controltest.ConfigMaps, "default", "")
	tab, err := c.In(controltest.Crontabs, "default").Get(t.Context(), "tab", metav1.GetOptions{}) // still stored in v1
	if err != nil || len(tab.GetOwnerReferences()) > 0 {
		t.Errorf("%v, %v", tab, err)
	}
}

// TestOldOrphanOption uses the delete option from before policies; it overrides a finalizer of the object.
func TestOldOrphanOption(t *testing.T) {
	c := start(t)
	owner := controltest.ConfigMap("owner")
	owner.SetFinalizers([]string{metav1.FinalizerOrphanDependents})
	owner = c.Create(controltest.ConfigMaps, owner)
	c.Create(controltest.Secrets, controltest.Secret("s", controltest.Owned(owner)))
	no := false
	//lint:ignore SA1019 the old option is what this is about
	old := metav1.DeleteOptions{OrphanDependents: &no}
	if err := c.In(controltest.ConfigMaps, "default").Delete(t.Context(), "owner", old); err != nil {
		t.Fatal(err)
	}
	c.UntilMine(controltest.ConfigMaps, "default", "")
	c.Until(controltest.Secrets, "default", "")

	owner = controltest.ConfigMap("owner")
	owner.SetFinalizers([]string{metav1.FinalizerOrphanDependents})
	owner = c.Create(controltest.ConfigMaps, owner)
	c.Create(controltest.Secrets, controltest.Secret("s", controltest.Owned(owner)))
	c.Delete(controltest.ConfigMaps, owner, "") // the finalizer decides
	c.UntilMine(controltest.ConfigMaps, "default", "")
	c.When(controltest.Secrets, "default", "no owner", func(objects map[string]*unstructured.Unstructured) bool {
		return objects["s"] != nil && len(objects["s"].GetOwnerReferences()) == 0
	})
}

func TestAbsentOwners(t *testing.T) {
	c := start(t)
	real := c.Create(controltest.ConfigMaps, controltest.ConfigMap("real"))
	never := controltest.ConfigMap("never")
	never.SetUID("00000000-0000-0000-0000-000000000001")
	impostor := controltest.ConfigMap("real")
	impostor.SetUID("00000000-0000-0000-0000-000000000002")
	c.Create(controltest.Secrets, controltest.Secret("never", controltest.Owned(never)))
	c.Create(controltest.Secrets, controltest.Secret("other-uid", controltest.Owned(impostor)))
	c.Create(controltest.Secrets, controltest.Secret("mixed", controltest.Owned(real), controltest.Owned(never)))
	c.Until(controltest.Secrets, "default", "mixed")
	c.When(controltest.Secrets, "default", "one reference", func(objects map[string]*unstructured.Unstructured) bool {
		refs := objects["mixed"].GetOwnerReferences()
		return len(refs) == 1 && refs[0].UID == real.GetUID()
	})
}

// TestOwnerOfUnknownKind keeps an object until its owner's kind is served, and then detects that the owner does not
// exist.
func TestOwnerOfUnknownKind(t *testing.T) {
	c := start(t)
	owner := controltest.Object("stable.example.com/v1", "CronTab", "default", "tab")
	owner.SetUID("00000000-0000-0000-0000-000000000001")
	c.Create(controltest.Secrets, controltest.Secret("s", controltest.Owned(owner)))
	absent := controltest.ConfigMap("absent")
	absent.SetUID("00000000-0000-0000-0000-000000000002")
	c.Create(controltest.Secrets, controltest.Secret("t", controltest.Owned(absent)))
	c.Until(controltest.Secrets, "default", "s")
	c.Create(controltest.Definitions, controltest.Definition("crontabs", "CronTab", "Namespaced"))
	c.Until(controltest.Secrets, "default", "")
}

// TestOwnersGoWithTheirKind deletes a definition; dependents of its objects are deleted, too.
func TestOwnersGoWithTheirKind(t *testing.T) {
	c := start(t)
	def := c.Create(controltest.Definitions, controltest.Definition("crontabs", "CronTab", "Namespaced"))
	tab := c.Create(controltest.Crontabs, controltest.Object("stable.example.com/v1", "CronTab", "default", "tab"))
	c.Create(controltest.Secrets, controltest.Secret("s", controltest.Owned(tab)))
	c.Delete(controltest.Definitions, def, "")
	c.Until(controltest.Secrets, "default", "")
	c.Until(controltest.Definitions, "", "")
}

func TestForeignOwners(t *testing.T) {
	c := start(t)
	c.Create(controltest.Namespaces, controltest.Object("v1", "Namespace", "", "other"))
	c.Create(controltest.Definitions, controltest.Definition("fleets", "Fleet", "Cluster"))
	owner := c.Create(controltest.ConfigMaps, controltest.ConfigMap("owner"))
	stranger := c.Create(controltest.Secrets,
		controltest.Object("v1", "Secret", "other", "s", controltest.Owned(owner)))
	fleet := c.Create(controltest.Fleets,
		controltest.Object("stable.example.com/v1", "Fleet", "", "fleet", controltest.Owned(owner)))
	c.Until(controltest.Secrets, "other", "")
	check := func(namespace string, about *unstructured.Unstructured) {
		t.Helper()
		want := fmt.Sprintf(
			"ownerRef [v1/ConfigMap, namespace: %s, name: owner, uid: %s] does not exist in namespace %q",
			about.GetNamespace(), owner.GetUID(), about.GetNamespace())
		c.When(controltest.Events, namespace, want, func(objects map[string]*unstructured.Unstructured) bool {
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
	if _, err := c.In(controltest.Fleets, "").Get(t.Context(), "fleet", metav1.GetOptions{}); err != nil {
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
	owner := c.Create(controltest.ConfigMaps, controltest.ConfigMap("owner"))
	var wg sync.WaitGroup
	next := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range next {
				if _, err := c.In(controltest.Secrets, "default").Create(t.Context(),
					controltest.Secret(fmt.Sprintf("s-%05d", i), controltest.Blocking(owner)),
					metav1.CreateOptions{}); err != nil {
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
	c.Delete(controltest.ConfigMaps, owner, metav1.DeletePropagationForeground)
	began := time.Now()
	c.UntilMine(controltest.ConfigMaps, "default", "")
	t.Logf("%d dependents were gone after %v", count, time.Since(began).Round(time.Millisecond))
	c.Until(controltest.Secrets, "default", "")
}
