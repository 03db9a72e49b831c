package extension_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/test/vessels"
)

// TestGarbage checks garbage collection between objects of this server and a server behind it that own each other: the
// collector of the server in front deletes, orphans and waits as for its own objects.
func TestGarbage(t *testing.T) {
	c := controltest.Start(t)
	serveBehind(t, c.Config)
	kind := schema.GroupVersionResource{Group: vessels.Group, Version: "v1", Resource: "vessels"}
	vessel := func(name string, owners ...controltest.Owner) *unstructured.Unstructured {
		obj := controltest.Object(vessels.Group+"/v1", "Vessel", "default", name, owners...)
		obj.Object["spec"] = map[string]any{"captain": "Ishmael"}
		return c.Create(kind, obj)
	}
	deletion := func(owner string, objects map[string]*unstructured.Unstructured) bool {
		return objects[owner] != nil && objects[owner].GetDeletionTimestamp() != nil
	}
	held := func(resource schema.GroupVersionResource, name string) {
		c.Helper()
		if _, err := c.In(resource, "default").Patch(t.Context(), name, "application/merge-patch+json",
			[]byte(`{"metadata":{"finalizers":["example.com/hold"]}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	free := func(resource schema.GroupVersionResource, name string) {
		c.Helper()
		if _, err := c.In(resource, "default").Patch(t.Context(), name, "application/merge-patch+json",
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	pequod := vessel("pequod")
	c.Create(controltest.ConfigMaps, controltest.ConfigMap("log", controltest.Owned(pequod)))
	other := pequod.DeepCopy()
	other.SetUID("another")
	c.Create(controltest.ConfigMaps, controltest.ConfigMap("of-another", controltest.Owned(other)))
	c.UntilMine(controltest.ConfigMaps, "default", "log")
	c.Delete(kind, pequod, metav1.DeletePropagationBackground)
	c.UntilMine(controltest.ConfigMaps, "default", "")

	// In the foreground, the owner behind.
	pequod = vessel("pequod")
	c.Create(controltest.ConfigMaps, controltest.ConfigMap("log", controltest.Blocking(pequod)))
	held(controltest.ConfigMaps, "log")
	c.Delete(kind, pequod, metav1.DeletePropagationForeground)
	c.When(controltest.ConfigMaps, "default", "deletion", func(all map[string]*unstructured.Unstructured) bool {
		return deletion("log", all)
	})
	if _, err := c.In(kind, "default").Get(t.Context(), "pequod", metav1.GetOptions{}); err != nil {
		t.Fatalf("an owner whose dependent is still there: %v", err)
	}
	free(controltest.ConfigMaps, "log")
	c.Until(kind, "default", "")

	// Orphans of an owner behind.
	pequod = vessel("pequod")
	c.Create(controltest.ConfigMaps, controltest.ConfigMap("log", controltest.Owned(pequod)))
	c.Delete(kind, pequod, metav1.DeletePropagationOrphan)
	c.Until(kind, "default", "")
	c.When(controltest.ConfigMaps, "default", "no owner", func(all map[string]*unstructured.Unstructured) bool {
		return len(all["log"].GetOwnerReferences()) == 0
	})

	// The dependent behind.
	owner := c.Create(controltest.Secrets, controltest.Secret("owner"))
	vessel("boat", controltest.Blocking(owner))
	held(kind, "boat")
	c.Delete(controltest.Secrets, owner, metav1.DeletePropagationForeground)
	c.When(kind, "default", "deletion", func(all map[string]*unstructured.Unstructured) bool {
		return deletion("boat", all)
	})
	free(kind, "boat")
	c.Until(controltest.Secrets, "default", "")
	c.Until(kind, "default", "")
	owner = c.Create(controltest.Secrets, controltest.Secret("owner"))
	vessel("boat", controltest.Owned(owner), controltest.Owned(pequod))
	// The collector removes the reference to the missing owner, so it has seen the boat.
	c.When(kind, "default", "one owner", func(all map[string]*unstructured.Unstructured) bool {
		return len(all["boat"].GetOwnerReferences()) == 1
	})
	c.Delete(controltest.Secrets, owner, metav1.DeletePropagationOrphan)
	c.Until(controltest.Secrets, "default", "")
	c.When(kind, "default", "no owner", func(all map[string]*unstructured.Unstructured) bool {
		return len(all["boat"].GetOwnerReferences()) == 0
	})
}
