package control_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
)

// TestNamespaceDeletionWaits holds a namespace by an object's finalizer, then by its own.
func TestNamespaceDeletionWaits(t *testing.T) {
	c := start(t)
	ns := controltest.Object("v1", "Namespace", "", "shop")
	if err := unstructured.SetNestedStringSlice(ns.Object, []string{"example.com/own"}, "spec",
		"finalizers"); err != nil {
		t.Fatal(err)
	}
	c.Create(controltest.Namespaces, ns)
	held := controltest.Object("v1", "Secret", "shop", "held")
	held.SetFinalizers([]string{"example.com/hold"})
	c.Create(controltest.Secrets, held)
	c.Create(controltest.ConfigMaps, controltest.Object("v1", "ConfigMap", "shop", "free"))
	c.Delete(controltest.Namespaces, ns, "")
	conditions := func(want map[string]string) {
		t.Helper()
		c.When(controltest.Namespaces, "", "conditions", func(objects map[string]*unstructured.Unstructured) bool {
			if objects["shop"] == nil {
				return false
			}
			list, _, _ := unstructured.NestedSlice(objects["shop"].Object, "status", "conditions")
			have := map[string]string{}
			for _, entry := range list {
				condition := entry.(map[string]any)
				have[condition["type"].(string)] = condition["status"].(string) + " " + condition["message"].(string)
			}
			for kind, text := range want {
				if have[kind] != text {
					return false
				}
			}
			return true
		})
	}
	conditions(map[string]string{
		"NamespaceContentRemaining":                   "True Some resources are remaining: secrets. has 1 resource instances",
		"NamespaceFinalizersRemaining":                "True Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
		"NamespaceDeletionContentFailure":             "False All content successfully deleted, may be waiting on finalization",
		"NamespaceDeletionDiscoveryFailure":           "False All resources successfully discovered",
		"NamespaceDeletionGroupVersionParsingFailure": "False All legacy kube types successfully parsed",
	})
	c.Until(controltest.ConfigMaps, "shop", "")
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := c.In(controltest.Secrets, "shop").Patch(t.Context(), "held", "application/merge-patch+json", patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	conditions(map[string]string{"NamespaceContentRemaining": "False All content successfully removed"})
	c.When(controltest.Namespaces, "", "one finalizer", func(objects map[string]*unstructured.Unstructured) bool {
		left, _, _ := unstructured.NestedStringSlice(objects["shop"].Object, "spec", "finalizers")
		return len(left) == 1 && left[0] == "example.com/own"
	})
	current, err := c.In(controltest.Namespaces, "").Get(t.Context(), "shop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(current.Object, "spec", "finalizers")
	if _, err := c.In(controltest.Namespaces, "").Update(t.Context(), current, metav1.UpdateOptions{},
		"finalize"); err != nil {
		t.Fatal(err)
	}
	c.Until(controltest.Namespaces, "", "default kube-node-lease kube-public kube-system")
}
