package apps_test

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
)

var (
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	revisions    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
	claims       = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
)

// TestStatefulSet checks that a StatefulSet creates its pods one after another with claims and ordinals, replaces them
// from the last down to the partition, and on scaling down deletes pods with their claims if that is its policy.
func TestStatefulSet(t *testing.T) {
	c := start(t)
	o := workload("apps/v1", "StatefulSet", "db", 3)
	spec := o.Object["spec"].(map[string]any)
	spec["serviceName"] = "db"
	spec["persistentVolumeClaimRetentionPolicy"] = map[string]any{"whenScaled": "Delete", "whenDeleted": "Retain"}
	spec["volumeClaimTemplates"] = []any{map[string]any{
		"metadata": map[string]any{"name": "data"},
		"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"},
			"resources":   map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		},
	}}
	c.Create(statefulSets, o)
	done := func(replicas, updated int64) func(map[string]*unstructured.Unstructured) bool {
		return func(all map[string]*unstructured.Unstructured) bool {
			s := all["db"]
			return number(s, "status", "observedGeneration") == s.GetGeneration() &&
				number(s, "status", "replicas") == replicas && number(s, "status", "availableReplicas") == replicas &&
				number(s, "status", "updatedReplicas") == updated
		}
	}
	c.When(statefulSets, "default", "three pods", done(3, 3))
	c.Until(controltest.Pods, "default", "db-0 db-1 db-2")
	c.Until(claims, "default", "data-db-0 data-db-1 data-db-2")
	c.When(controltest.Pods, "default", "numbers", func(all map[string]*unstructured.Unstructured) bool {
		p := all["db-1"]
		host, _, _ := unstructured.NestedString(p.Object, "spec", "hostname")
		return p.GetLabels()["apps.kubernetes.io/pod-index"] == "1" && host == "db-1" &&
			p.GetLabels()["statefulset.kubernetes.io/pod-name"] == "db-1"
	})
	patch(c, statefulSets, "db", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}},
		"template":{"metadata":{"annotations":{"v":"2"}}}}}`)
	c.When(statefulSets, "default", "two pods of the new template", done(3, 2))
	partly := func(all map[string]*unstructured.Unstructured) bool {
		return len(all) == 3 && all["db-0"].GetAnnotations()["v"] == "" && all["db-1"].GetAnnotations()["v"] == "2" &&
			all["db-2"].GetAnnotations()["v"] == "2"
	}
	c.When(controltest.Pods, "default", "the first one as it was", partly)
	patch(c, statefulSets, "db", `{"spec":{"replicas":1,"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
	c.When(statefulSets, "default", "one pod", done(1, 1))
	c.Until(controltest.Pods, "default", "db-0")
	c.Until(claims, "default", "data-db-0")
	list, err := c.In(revisions, "default").List(c.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list.Items {
		if want := "db-" + r.GetLabels()["controller.kubernetes.io/hash"]; r.GetName() != want {
			t.Errorf("revision %s, want %s", r.GetName(), want)
		}
	}
	if len(list.Items) != 2 {
		t.Errorf("%d revisions", len(list.Items))
	}
}

// A parallel StatefulSet does not wait for a pod that hangs.
func TestParallelStatefulSet(t *testing.T) {
	c := start(t)
	o := workload("apps/v1", "StatefulSet", "db", 3)
	spec := o.Object["spec"].(map[string]any)
	spec["podManagementPolicy"] = "Parallel"
	template := spec["template"].(map[string]any)["metadata"].(map[string]any)
	template["annotations"] = map[string]any{"bowsprit.dev/test-becomes": "hanging"}
	c.Create(statefulSets, o)
	c.Until(controltest.Pods, "default", "db-0 db-1 db-2")
}

// TestRecreatedStatefulSet checks that the strategy Recreate deletes all old pods before it creates new ones, and
// reports this in the condition Progressing.
func TestRecreatedStatefulSet(t *testing.T) {
	c := start(t, func(c *bowsprit.Config) {
		c.API.Features = map[string]bool{"StatefulSetRecreateStrategy": true}
	})
	o := workload("apps/v1", "StatefulSet", "db", 3)
	spec := o.Object["spec"].(map[string]any)
	spec["updateStrategy"] = map[string]any{"type": "Recreate"}
	c.Create(statefulSets, o)
	whole := func(conditions ...string) func(map[string]*unstructured.Unstructured) bool {
		return func(all map[string]*unstructured.Unstructured) bool {
			s := all["db"]
			return number(s, "status", "observedGeneration") == s.GetGeneration() &&
				number(s, "status", "availableReplicas") == 3 && number(s, "status", "updatedReplicas") == 3 &&
				slices.Equal(reasons(s), conditions)
		}
	}
	c.When(statefulSets, "default", "three pods without a condition", whole())
	list, err := c.In(controltest.Pods, "default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.In(controltest.Pods, "default").Watch(t.Context(),
		metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	patch(c, statefulSets, "db", `{"spec":{"template":{"metadata":{"annotations":{"v":"2"}}}}}`)
	c.When(statefulSets, "default", "three new pods", whole("Progressing=False RecreateCompleted"))
	deleted, added := 0, 0
	for ev := range w.ResultChan() {
		switch ev.Type {
		case watch.Deleted:
			deleted++
		case watch.Added:
			if added++; deleted != 3 {
				t.Errorf("a new pod after %d deletions", deleted)
			}
		}
		if added == 3 {
			break
		}
	}
}

// TestRecreateRefused checks that without the feature gate, updates have no strategy Recreate.
func TestRecreateRefused(t *testing.T) {
	c := start(t)
	o := workload("apps/v1", "StatefulSet", "db", 1)
	o.Object["spec"].(map[string]any)["updateStrategy"] = map[string]any{"type": "Recreate"}
	_, err := c.In(statefulSets, "default").Create(t.Context(), o, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "must be 'RollingUpdate' or 'OnDelete'") {
		t.Errorf("the error is %v", err)
	}
}
