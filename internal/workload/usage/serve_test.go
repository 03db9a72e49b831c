package usage_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	podMetrics  = schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"}
	nodeMetrics = schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "nodes"}
)

// start creates a pod in a namespace and waits until it runs.
func start(s *controltest.Cluster, namespace, name, cpu string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), controltest.Patience)
	defer cancel()
	pods := s.In(controltest.Pods, namespace)
	made, err := pods.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": name, "labels": map[string]any{"app": name},
			"annotations": map[string]any{"kwok.x-k8s.io/usage-cpu": cpu},
		},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "i"}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	w, err := pods.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + name, ResourceVersion: made.GetResourceVersion(),
	})
	if err != nil {
		s.Fatal(err)
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		if p, ok := ev.Object.(*unstructured.Unstructured); ok {
			phase, _, _ := unstructured.NestedString(p.Object, "status", "phase")
			if phase == string(corev1.PodRunning) {
				return
			}
		}
	}
	s.Fatalf("%s does not run", name)
}

// list returns the names of a list of metrics, with the field at path.
func list(s *controltest.Cluster, gvr schema.GroupVersionResource, namespace, selector string, path ...string) string {
	s.Helper()
	all, err := s.In(gvr, namespace).List(s.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		s.Fatal(err)
	}
	out := ""
	for i := range all.Items {
		value, _, _ := unstructured.NestedFieldNoCopy(all.Items[i].Object, path...)
		out += fmt.Sprintf("%s/%s %v;", all.Items[i].GetNamespace(), all.Items[i].GetName(), value)
	}
	return out
}

// TestServe checks that metrics are computed at each read, for running pods on healthy nodes, by namespace, name and
// labels.
func TestServe(t *testing.T) {
	s := controltest.Start(t, testserver.WithWorkloads("nodes=1"))
	if got := list(s, nodeMetrics, "", "", "usage"); got != "/node-0 map[cpu:0 memory:0];" {
		t.Errorf("a node without pods: %s", got)
	}
	if _, err := s.In(controltest.Namespaces, "").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	start(s, "default", "web", "250m")
	start(s, "shop", "db", "1")
	for _, c := range []struct{ namespace, selector, want string }{
		{"", "", "default/web 10s;shop/db 10s;"},
		{"shop", "", "shop/db 10s;"},
		{"", "app=web", "default/web 10s;"},
		{"shop", "app=web", ""},
	} {
		if got := list(s, podMetrics, c.namespace, c.selector, "window"); got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.namespace, c.selector, got, c.want)
		}
	}
	one, err := s.In(podMetrics, "default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || fmt.Sprint(one.Object["containers"]) != "[map[name:main usage:map[cpu:250m memory:1Mi]]]" {
		t.Errorf("%v, %v", one, err)
	}
	if got := list(s, nodeMetrics, "", "", "usage"); got != "/node-0 map[cpu:1250m memory:2Mi];" {
		t.Errorf("a node with pods: %s", got)
	}
	for _, gvr := range []schema.GroupVersionResource{podMetrics, nodeMetrics} {
		namespace, want := "", `nodemetrics.metrics.k8s.io "none" not found`
		if gvr == podMetrics {
			namespace, want = "default", `podmetrics.metrics.k8s.io "default/none" not found`
		}
		if _, err := s.In(gvr, namespace).Get(t.Context(), "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) ||
			err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		_, err := s.In(gvr, namespace).Watch(t.Context(), metav1.ListOptions{})
		if !apierrors.IsMethodNotSupported(err) {
			t.Errorf("a watch: %v", err)
		}
	}
	down := []byte(`{"metadata":{"annotations":{"bowsprit.dev/simulate-down":"true"}}}`)
	if _, err := s.In(controltest.Nodes, "").Patch(t.Context(), "node-0", "application/merge-patch+json", down,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := list(s, nodeMetrics, "", "", "usage") + list(s, podMetrics, "", "", "window"); got != "" {
		t.Errorf("of a node that is down: %s", got)
	}
}

// TestOff checks that the API is missing without simulated workloads.
func TestOff(t *testing.T) {
	s := controltest.Start(t)
	if _, err := s.In(podMetrics, "").List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
}
