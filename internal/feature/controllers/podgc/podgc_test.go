package podgc_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
)

// TestPodsOnNodes checks that a deleted pod on a missing node is removed as failed, and that a pod on a node stays
// until its kubelet has ended it.
func TestPodsOnNodes(t *testing.T) {
	c := controltest.Start(t)
	c.Create(controltest.Nodes, controltest.Object("v1", "Node", "", "n"))
	there, gone := c.Create(controltest.Pods, controltest.PodOn("n", "default", "there")),
		c.Create(controltest.Pods, controltest.PodOn("absent", "default", "gone"))
	w, err := c.In(controltest.Pods, "default").Watch(t.Context(),
		metav1.ListOptions{ResourceVersion: gone.GetResourceVersion(), FieldSelector: "metadata.name=gone"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	c.Delete(controltest.Pods, there, "")
	c.Delete(controltest.Pods, gone, "")
	var story []string
	for ev := range w.ResultChan() {
		pod, _ := ev.Object.(*unstructured.Unstructured)
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		story = append(story, string(ev.Type)+" "+phase)
		if ev.Type == "DELETED" {
			break
		}
	}
	if got := strings.Join(story, ", "); got != "MODIFIED Pending, MODIFIED Failed, MODIFIED Failed, DELETED Failed" {
		t.Errorf("events: %s", got)
	}
	c.Until(controltest.Pods, "default", "there")
	c.Delete(controltest.Nodes, controltest.Object("v1", "Node", "", "n"), "")
	c.Until(controltest.Pods, "default", "")
}

// TestNamespaceWaitsForPods checks that a deleted namespace waits for its pods, and reports pods beyond their grace
// period.
func TestNamespaceWaitsForPods(t *testing.T) {
	c := controltest.Start(t)
	ns := c.Create(controltest.Namespaces, controltest.Object("v1", "Namespace", "", "shop"))
	c.Create(controltest.Nodes, controltest.Object("v1", "Node", "", "n"))
	slow := controltest.PodOn("n", "shop", "slow")
	slow.Object["spec"].(map[string]any)["terminationGracePeriodSeconds"] = int64(0)
	slow.SetFinalizers([]string{"example.com/hold"})
	c.Create(controltest.Pods, slow)
	c.Create(controltest.Pods, controltest.PodOn("absent", "shop", "gone"))
	there := controltest.PodOn("n", "shop", "there")
	there.Object["spec"].(map[string]any)["terminationGracePeriodSeconds"] = int64(1)
	c.Create(controltest.Pods, there)
	c.Create(controltest.ConfigMaps, controltest.Object("v1", "ConfigMap", "shop", "kept"))
	c.Delete(controltest.Namespaces, ns, "")
	c.When(controltest.Pods, "shop", "two pods that are being deleted",
		func(objects map[string]*unstructured.Unstructured) bool {
			return len(objects) == 2 && objects["there"].GetDeletionTimestamp() != nil &&
				objects["slow"].GetDeletionTimestamp() != nil
		})
	c.When(controltest.ConfigMaps, "shop", "what pods may use",
		func(objects map[string]*unstructured.Unstructured) bool { return objects["kept"] != nil })
	if _, err := c.In(controltest.Pods, "shop").Patch(t.Context(), "slow", "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.When(controltest.Namespaces, "", "word of the pod that is late",
		func(objects map[string]*unstructured.Unstructured) bool {
			list, _, _ := unstructured.NestedSlice(objects["shop"].Object, "status", "conditions")
			return slices.ContainsFunc(list, func(c any) bool {
				return c.(map[string]any)["message"] == "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: shop for gvr: /v1, Resource=pods"
			})
		})
	now := int64(0)
	if err := c.In(controltest.Pods, "shop").Delete(t.Context(), "there",
		metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	c.Until(controltest.Namespaces, "", "default kube-node-lease kube-public kube-system")
}
