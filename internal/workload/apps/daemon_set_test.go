package apps_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

var daemonSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}

// A DaemonSet has a pod for each node that it may run on, and none elsewhere; a new template replaces them.
func TestDaemonSet(t *testing.T) {
	c := controltest.Start(t, testserver.WithWorkloads("nodes=3"))
	_, err := c.In(controltest.Nodes, "").Patch(c.Context(), "node-2", types.MergePatchType,
		[]byte(`{"spec":{"taints":[{"key":"own","effect":"NoSchedule"}]}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := workload("apps/v1", "DaemonSet", "agent", 0)
	spec := o.Object["spec"].(map[string]any)
	delete(spec, "replicas")
	delete(spec["template"].(map[string]any)["spec"].(map[string]any), "schedulerName")
	c.Create(daemonSets, o)
	done := func(nodes int64) func(map[string]*unstructured.Unstructured) bool {
		return func(all map[string]*unstructured.Unstructured) bool {
			s := all["agent"]
			for _, field := range []string{
				"desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberAvailable",
				"updatedNumberScheduled",
			} {
				if number(s, "status", field) != nodes {
					return false
				}
			}
			return number(s, "status", "observedGeneration") == s.GetGeneration()
		}
	}
	c.When(daemonSets, "default", "pods for two nodes", done(2))
	patch(c, daemonSets, "agent", `{"spec":{"template":{"metadata":{"annotations":{"v":"2"}}}}}`)
	c.When(daemonSets, "default", "the new template", done(2))
	c.When(controltest.Pods, "default", "pods of the new template",
		func(all map[string]*unstructured.Unstructured) bool {
			for _, p := range all {
				if p.GetAnnotations()["v"] != "2" || p.GetLabels()["controller-revision-hash"] == "" ||
					p.GetLabels()["pod-template-generation"] != "2" {
					return false
				}
			}
			return len(all) == 2
		})
	patch(c, daemonSets, "agent", `{"spec":{"template":{"spec":{"tolerations":[{"operator":"Exists"}]}}}}`)
	c.When(daemonSets, "default", "pods for all nodes", done(3))
}

// TestDaemonSetSurgeWaits checks that a surging rollout continues once new pods have been ready for long enough,
// without another event.
func TestDaemonSetSurgeWaits(t *testing.T) {
	c := controltest.Start(t, testserver.WithWorkloads("nodes=2"))
	o := workload("apps/v1", "DaemonSet", "agent", 0)
	spec := o.Object["spec"].(map[string]any)
	delete(spec, "replicas")
	delete(spec["template"].(map[string]any)["spec"].(map[string]any), "schedulerName")
	spec["minReadySeconds"] = int64(1)
	spec["updateStrategy"] = map[string]any{
		"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": int64(0), "maxSurge": int64(1)},
	}
	c.Create(daemonSets, o)
	available := func(generation int64) func(map[string]*unstructured.Unstructured) bool {
		return func(all map[string]*unstructured.Unstructured) bool {
			s := all["agent"]
			return number(s, "status", "observedGeneration") == generation &&
				number(s, "status", "updatedNumberScheduled") == 2 && number(s, "status", "numberAvailable") == 2
		}
	}
	c.When(daemonSets, "default", "pods", available(1))
	patch(c, daemonSets, "agent", `{"spec":{"template":{"metadata":{"annotations":{"v":"2"}}}}}`)
	c.When(daemonSets, "default", "the new template", available(2))
}
