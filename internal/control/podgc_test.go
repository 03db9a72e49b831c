package control_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	pods  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// podOn returns a pod that a scheduler has put on a node.
func podOn(node, namespace, name string) *unstructured.Unstructured {
	pod := object("v1", "Pod", namespace, name)
	pod.Object["spec"] = map[string]any{
		"nodeName": node, "containers": []any{map[string]any{"name": "c", "image": "i"}},
	}
	return pod
}

// A pod on a node that does not exist goes when it is deleted, and leaves as one that has failed; one on a node stays
// until somebody says that it has ended.
func TestPodsOnNodes(t *testing.T) {
	c := start(t)
	c.create(nodes, object("v1", "Node", "", "n"))
	there, gone := c.create(pods, podOn("n", "default", "there")), c.create(pods, podOn("absent", "default", "gone"))
	w, err := c.in(pods, "default").Watch(t.Context(),
		metav1.ListOptions{ResourceVersion: gone.GetResourceVersion(), FieldSelector: "metadata.name=gone"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	c.delete(pods, there, "")
	c.delete(pods, gone, "")
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
	c.until(pods, "default", "there")
	c.delete(nodes, object("v1", "Node", "", "n"), "")
	c.until(pods, "default", "")
}

// A namespace waits for its pods, and says so when they take longer than they may.
func TestNamespaceWaitsForPods(t *testing.T) {
	c := start(t)
	ns := c.create(namespaces, object("v1", "Namespace", "", "shop"))
	c.create(nodes, object("v1", "Node", "", "n"))
	slow := podOn("n", "shop", "slow")
	slow.Object["spec"].(map[string]any)["terminationGracePeriodSeconds"] = int64(0)
	slow.SetFinalizers([]string{"example.com/hold"})
	c.create(pods, slow)
	c.create(pods, podOn("absent", "shop", "gone"))
	there := podOn("n", "shop", "there")
	there.Object["spec"].(map[string]any)["terminationGracePeriodSeconds"] = int64(1)
	c.create(pods, there)
	c.create(configMaps, object("v1", "ConfigMap", "shop", "kept"))
	c.delete(namespaces, ns, "")
	c.when(pods, "shop", "two pods that are being deleted", func(objects map[string]*unstructured.Unstructured) bool {
		return len(objects) == 2 && objects["there"].GetDeletionTimestamp() != nil &&
			objects["slow"].GetDeletionTimestamp() != nil
	})
	c.when(configMaps, "shop", "what pods may use",
		func(objects map[string]*unstructured.Unstructured) bool { return objects["kept"] != nil })
	if _, err := c.in(pods, "shop").Patch(t.Context(), "slow", "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.when(namespaces, "", "word of the pod that is late", func(objects map[string]*unstructured.Unstructured) bool {
		list, _, _ := unstructured.NestedSlice(objects["shop"].Object, "status", "conditions")
		return slices.ContainsFunc(list, func(c any) bool {
			return c.(map[string]any)["message"] == "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: shop for gvr: /v1, Resource=pods"
		})
	})
	now := int64(0)
	if err := c.in(pods, "shop").Delete(t.Context(), "there",
		metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	c.until(namespaces, "", "default kube-node-lease kube-public kube-system")
}
