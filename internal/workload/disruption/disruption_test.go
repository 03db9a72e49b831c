package disruption_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	budgets     = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// pod returns a pod that runs for ever.
func pod(name, app string, owners ...controltest.Owner) *unstructured.Unstructured {
	o := controltest.Object("v1", "Pod", "default", name, owners...)
	o.SetLabels(map[string]string{"app": app})
	if refs := o.GetOwnerReferences(); len(refs) > 0 {
		refs[0].Controller = new(true)
		o.SetOwnerReferences(refs)
	}
	o.Object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "c", "image": "a"}}}
	return o
}

// budget returns a budget for the pods of an app.
func budget(app, field string, value any) *unstructured.Unstructured {
	o := controltest.Object("policy/v1", "PodDisruptionBudget", "default", app)
	o.Object["spec"] = map[string]any{
		field: value, "selector": map[string]any{"matchLabels": map[string]any{"app": app}},
	}
	return o
}

// numbers is the status of a budget: allowed, healthy of desired of expected, and the condition.
func numbers(o *unstructured.Unstructured) string {
	if o == nil {
		return "none"
	}
	n := func(field string) int64 {
		v, _, _ := unstructured.NestedInt64(o.Object, "status", field)
		return v
	}
	if n("observedGeneration") != o.GetGeneration() {
		return "old"
	}
	out := fmt.Sprintf("allows %d: %d of %d of %d", n("disruptionsAllowed"), n("currentHealthy"), n("desiredHealthy"),
		n("expectedPods"))
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, v := range list {
		c, _ := v.(map[string]any)
		out += fmt.Sprintf(" %v=%v %v", c["type"], c["status"], c["reason"])
	}
	return out
}

func until(c *controltest.Cluster, name, want string) {
	c.Helper()
	c.When(budgets, "default", name+": "+want, func(all map[string]*unstructured.Unstructured) bool {
		return numbers(all[name]) == want
	})
}

func reported(c *controltest.Cluster, about, reason string) {
	c.Helper()
	c.When(controltest.Events, "default", reason+" of "+about, func(all map[string]*unstructured.Unstructured) bool {
		for _, ev := range all {
			name, _, _ := unstructured.NestedString(ev.Object, "involvedObject", "name")
			got, _, _ := unstructured.NestedString(ev.Object, "reason")
			if name == about && got == reason {
				return true
			}
		}
		return false
	})
}

// TestBudgets checks that budgets count pods, and the replicas of controllers of all kinds.
func TestBudgets(t *testing.T) {
	c := controltest.Start(t, testserver.WithWorkloads("pods=1000"))
	d := controltest.Object("apps/v1", "Deployment", "default", "web")
	d.Object["spec"] = map[string]any{
		"replicas": int64(4), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "a"}}},
		},
	}
	c.Create(deployments, d)
	c.Create(budgets, budget("web", "maxUnavailable", "30%"))
	until(c, "web", "allows 2: 4 of 2 of 4 DisruptionAllowed=True SufficientPods")

	c.Create(budgets, budget("none", "minAvailable", int64(1)))
	until(c, "none", "allows 0: 0 of 1 of 0 DisruptionAllowed=False InsufficientPods")
	reported(c, "none", "NoPods")

	c.Create(controltest.Pods, pod("alone", "alone"))
	c.Create(budgets, budget("alone", "minAvailable", "50%"))
	until(c, "alone", "allows 0: 1 of 0 of 0 DisruptionAllowed=False InsufficientPods")
	reported(c, "alone", "UnmanagedPods")

	c.Create(controltest.Definitions, scaled())
	c.Until(controltest.Definitions, "", "fleets.stable.example.com")
	fleet := controltest.Object("stable.example.com/v1", "Fleet", "default", "f")
	fleet.Object["spec"] = map[string]any{"replicas": int64(3)}
	owner := c.Create(controltest.Fleets, fleet)
	for i := range 3 {
		c.Create(controltest.Pods, pod(fmt.Sprintf("f-%d", i), "fleet", controltest.Owned(owner)))
	}
	c.Create(budgets, budget("fleet", "minAvailable", "34%"))
	until(c, "fleet", "allows 1: 3 of 2 of 3 DisruptionAllowed=True SufficientPods")

	owner = c.Create(controltest.ConfigMaps, controltest.ConfigMap("owner"))
	c.Create(controltest.Pods, pod("odd", "odd", controltest.Owned(owner)))
	c.Create(budgets, budget("odd", "maxUnavailable", int64(1)))
	c.When(budgets, "default", "odd to have failed", func(all map[string]*unstructured.Unstructured) bool {
		list, _, _ := unstructured.NestedSlice(all["odd"].Object, "status", "conditions")
		return len(list) == 1 && strings.Contains(fmt.Sprint(list[0]), "SyncFailed") &&
			strings.Contains(fmt.Sprint(list[0]), "configmaps does not implement the scale subresource")
	})
	reported(c, "odd", "CalculateExpectedPodCountFailed")

	second := budget("web", "minAvailable", int64(1))
	second.SetName("web-2")
	c.Create(budgets, second)
	until(c, "web-2", "allows 3: 4 of 1 of 4 DisruptionAllowed=True SufficientPods")
	c.Create(controltest.Pods, pod("two", "web"))
	reported(c, "two", "MultiplePodDisruptionBudgets")
}

// scaled is the definition of a kind with a scale.
func scaled() *unstructured.Unstructured {
	d := controltest.Definition("fleets", "Fleet", "Namespaced")
	versions, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
	versions[0].(map[string]any)["subresources"] = map[string]any{"scale": map[string]any{
		"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
	}}
	_ = unstructured.SetNestedSlice(d.Object, versions, "spec", "versions")
	return d
}

// TestEviction checks that an eviction that a budget forbids is rejected, and that an allowed one counts.
func TestEviction(t *testing.T) {
	c := controltest.Start(t, testserver.WithWorkloads())
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		c.Create(controltest.Pods, pod(name, "app"))
	}
	c.Create(budgets, budget("app", "minAvailable", int64(1)))
	until(c, "app", "allows 1: 2 of 1 of 2 DisruptionAllowed=True SufficientPods")
	evict := func(name string) error {
		ev := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		return client.PolicyV1().Evictions("default").Evict(c.Context(), ev)
	}
	if err := evict("a"); err != nil {
		t.Fatal(err)
	}
	if err := evict("b"); !apierrors.IsTooManyRequests(err) {
		t.Fatalf("the last pod that must stay is evicted: %v", err)
	}
	until(c, "app", "allows 0: 1 of 1 of 1 DisruptionAllowed=False InsufficientPods")
	c.Create(controltest.Pods, pod("c", "app"))
	until(c, "app", "allows 1: 2 of 1 of 2 DisruptionAllowed=True SufficientPods")
	if err := evict("b"); err != nil {
		t.Fatal(err)
	}
	until(c, "app", "allows 0: 1 of 1 of 1 DisruptionAllowed=False InsufficientPods")
}

// TestEvictionThatDidNotHappen checks that a pod that was not deleted after its eviction counts again, with its
// condition reset.
func TestEvictionThatDidNotHappen(t *testing.T) {
	clock := testserver.NewClock()
	c := controltest.Start(t, testserver.WithWorkloads(), testserver.WithClock(clock))
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	c.Create(controltest.Pods, pod("a", "app"))
	c.Create(budgets, budget("app", "minAvailable", int64(0)))
	until(c, "app", "allows 1: 1 of 0 of 1 DisruptionAllowed=True SufficientPods")
	at := clock.Now().UTC().Format(time.RFC3339)
	patches := types.MergePatchType
	if _, err := client.PolicyV1().PodDisruptionBudgets("default").Patch(c.Context(), "app", patches,
		fmt.Appendf(nil, `{"status":{"disruptedPods":{"a":%q}}}`, at), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	until(c, "app", "allows 0: 0 of 0 of 1 DisruptionAllowed=False InsufficientPods")
	if _, err := client.CoreV1().Pods("default").Patch(c.Context(), "a", types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"Test",`+
			`"lastTransitionTime":%q}]}}`, at), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	clock.Advance(3 * time.Minute)
	until(c, "app", "allows 1: 1 of 0 of 1 DisruptionAllowed=True SufficientPods")
	reported(c, "a", "NotDeleted")
	type objects = map[string]*unstructured.Unstructured
	c.When(controltest.Pods, "default", "a pod that is not disrupted", func(all objects) bool {
		list, _, _ := unstructured.NestedSlice(all["a"].Object, "status", "conditions")
		for _, v := range list {
			cond, _ := v.(map[string]any)
			if cond["type"] == string(corev1.DisruptionTarget) {
				return cond["status"] == "False"
			}
		}
		return false
	})
}
