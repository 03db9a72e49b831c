package autoscale_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

type object = map[string]any

const tooMuch = "cpu resource utilization (percentage of request) above target"

// deployment returns a Deployment with pods that request 1 CPU and 1Gi, and use cpu.
func deployment(name string, replicas int64, cpu string) *unstructured.Unstructured {
	d := controltest.Object("apps/v1", "Deployment", "default", name)
	d.Object["spec"] = object{
		"replicas": replicas, "selector": object{"matchLabels": object{"app": name}},
		"template": object{
			"metadata": object{
				"labels":      object{"app": name},
				"annotations": object{"kwok.x-k8s.io/usage-cpu": cpu, "kwok.x-k8s.io/usage-memory": "256Mi"},
			},
			"spec": object{"containers": []any{
				object{"name": "main", "image": "i", "resources": object{
					"requests": object{"cpu": "1", "memory": "1Gi"},
				}},
			}},
		},
	}
	return d
}

// autoscaler returns an autoscaler of a target, between 1 and 10 replicas.
func autoscaler(apiVersion, kind, name string, metrics ...any) *unstructured.Unstructured {
	a := controltest.Object("autoscaling/v2", "HorizontalPodAutoscaler", "default", name)
	a.Object["spec"] = object{
		"maxReplicas": int64(10), "scaleTargetRef": object{"apiVersion": apiVersion, "kind": kind, "name": name},
		"metrics": metrics,
	}
	return a
}

// half is the metric that CPU is used by half.
func half() any {
	return object{"type": "Resource", "resource": object{
		"name": "cpu", "target": object{"type": "Utilization", "averageUtilization": int64(50)},
	}}
}

func status(o *unstructured.Unstructured, field string) int64 {
	n, _, _ := unstructured.NestedInt64(o.Object, "status", field)
	return n
}

// conditions returns the conditions of an autoscaler as "type=status reason".
func conditions(o *unstructured.Unstructured) (out []string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, v := range list {
		c, _ := v.(object)
		out = append(out, fmt.Sprintf("%v=%v %v", c["type"], c["status"], c["reason"]))
	}
	return out
}

type suite struct {
	*controltest.Cluster
	clock *testserver.Clock
}

func start(t *testing.T, configure ...func(*bowsprit.Config)) *suite {
	clock := testserver.NewClock()
	configure = append(configure, testserver.WithWorkloads("pods=1000", "cpu=1000", "memory=1000Gi"),
		testserver.WithClock(clock))
	return &suite{controltest.Start(t, configure...), clock}
}

// ready waits until a Deployment has the number of ready pods.
func (s *suite) ready(name string, replicas int64) {
	s.Helper()
	s.When(deployments, "default", fmt.Sprintf("%s to have %d", name, replicas),
		func(all map[string]*unstructured.Unstructured) bool {
			return all[name] != nil && status(all[name], "readyReplicas") == replicas &&
				status(all[name], "replicas") == replicas
		})
}

// withCondition waits until an autoscaler has a condition.
func (s *suite) withCondition(name, condition string) (out *unstructured.Unstructured) {
	s.Helper()
	s.When(autoscalers, "default", name+": "+condition, func(all map[string]*unstructured.Unstructured) bool {
		out = all[name]
		return out != nil && slices.Contains(conditions(out), condition)
	})
	return out
}

// reports waits for an event about an autoscaler.
func (s *suite) reports(name, reason, message string) {
	s.Helper()
	s.When(controltest.Events, "default", reason+" of "+name+": "+message,
		func(all map[string]*unstructured.Unstructured) bool {
			for _, ev := range all {
				about, _, _ := unstructured.NestedStringMap(ev.Object, "involvedObject")
				component, _, _ := unstructured.NestedString(ev.Object, "source", "component")
				if about["kind"] == "HorizontalPodAutoscaler" && about["name"] == name &&
					ev.Object["reason"] == reason && ev.Object["message"] == message &&
					component == "horizontal-pod-autoscaler" {
					return true
				}
			}
			return false
		})
}

// use has the pods of an app use CPU.
func (s *suite) use(app, cpu string) {
	s.Helper()
	pods, err := s.In(controltest.Pods, "default").List(s.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		s.Fatal(err)
	}
	for _, p := range pods.Items {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"kwok.x-k8s.io/usage-cpu":%q}}}`, cpu)
		if _, err := s.In(controltest.Pods, "default").Patch(s.Context(), p.GetName(), types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			s.Fatal(err)
		}
	}
}

// A Deployment gets more replicas when its pods use more than they should, and after five minutes fewer.
func TestDeployment(t *testing.T) {
	s := start(t)
	s.Create(deployments, deployment("web", 2, "900m"))
	s.ready("web", 2)
	s.clock.Advance(time.Minute) // CPU counts once a pod has been ready for a while
	s.Create(autoscalers, autoscaler("apps/v1", "Deployment", "web", half()))
	s.reports("web", "SuccessfulRescale", "New size: 4; reason: "+tooMuch)
	s.ready("web", 4)
	a := s.withCondition("web", "AbleToScale=True SucceededRescale")
	if status(a, "currentReplicas") != 2 || status(a, "desiredReplicas") != 4 {
		t.Errorf("%v", a.Object["status"])
	}
	for _, want := range []string{
		"ScalingActive=True ValidMetricFound", "ScalingLimited=False DesiredWithinRange",
	} {
		if !slices.Contains(conditions(a), want) {
			t.Errorf("no %s: %q", want, conditions(a))
		}
	}
	if _, found, _ := unstructured.NestedString(a.Object, "status", "lastScaleTime"); !found {
		t.Error("no lastScaleTime")
	}
	metrics, _, _ := unstructured.NestedSlice(a.Object, "status", "currentMetrics")
	want := "[map[resource:map[current:map[averageUtilization:90 averageValue:900m] name:cpu] type:Resource]]"
	if fmt.Sprint(metrics) != want {
		t.Errorf("%v, want %s", metrics, want)
	}
	s.use("web", "100m")
	s.clock.Advance(time.Minute)
	s.withCondition("web", "AbleToScale=True ScaleDownStabilized")
	s.ready("web", 4)
	s.clock.Advance(6 * time.Minute)
	s.reports("web", "SuccessfulRescale", "New size: 1; reason: All metrics below target")
	s.ready("web", 1)
	s.clock.Advance(time.Minute)
	a = s.withCondition("web", "AbleToScale=True ReadyForNewScale")
	if status(a, "currentReplicas") != 1 {
		t.Errorf("%v", a.Object["status"])
	}
}

// TestBounds checks that the bounds hold before any metric is known, and that a target scaled to zero by hand is left
// alone.
func TestBounds(t *testing.T) {
	s := start(t)
	for name, replicas := range map[string]int64{"many": 12, "few": 1, "none": 0} {
		s.Create(deployments, deployment(name, replicas, "1m"))
		a := autoscaler("apps/v1", "Deployment", name, half())
		_ = unstructured.SetNestedField(a.Object, int64(3), "spec", "minReplicas")
		s.Create(autoscalers, a)
	}
	s.reports("many", "SuccessfulRescale", "New size: 10; reason: Current number of replicas above Spec.MaxReplicas")
	s.reports("few", "SuccessfulRescale", "New size: 3; reason: Current number of replicas below Spec.MinReplicas")
	s.withCondition("none", "ScalingActive=False ScalingDisabled")
	if few := s.withCondition("few", "ScaledToZero=False NotScaledToZero"); status(few, "observedGeneration") != 1 {
		t.Errorf("observed generation %d", status(few, "observedGeneration"))
	}
	s.ready("many", 10)
	s.ready("few", 3)
	s.ready("none", 0)
}

// TestBehavior checks that behavior limits the rate: here two pods a minute.
func TestBehavior(t *testing.T) {
	s := start(t)
	s.Create(deployments, deployment("web", 1, "1"))
	s.ready("web", 1)
	s.clock.Advance(time.Minute)
	a := autoscaler("apps/v1", "Deployment", "web", object{"type": "ContainerResource", "containerResource": object{
		"name": "memory", "container": "main", "target": object{"type": "AverageValue", "averageValue": "64Mi"},
	}})
	_ = unstructured.SetNestedField(a.Object, object{"scaleUp": object{
		"policies": []any{object{"type": "Pods", "value": int64(2), "periodSeconds": int64(60)}},
	}}, "spec", "behavior")
	s.Create(autoscalers, a)
	s.reports("web", "SuccessfulRescale", "New size: 3; reason: memory resource above target")
	s.withCondition("web", "ScalingLimited=True ScaleUpLimit")
	s.ready("web", 3)
	s.clock.Advance(61 * time.Second)
	s.reports("web", "SuccessfulRescale", "New size: 5; reason: memory resource above target")
	s.ready("web", 5)
}

// TestFailures checks Kubernetes' messages for unavailable metrics, and that a target scales up by the available ones
// nevertheless.
func TestFailures(t *testing.T) {
	s := start(t)
	s.Create(deployments, deployment("web", 1, "1"))
	s.ready("web", 1)
	s.clock.Advance(time.Minute)
	queue := object{"type": "External", "external": object{
		"metric": object{"name": "queue"}, "target": object{"type": "Value", "value": "1"},
	}}
	s.Create(autoscalers, autoscaler("apps/v1", "Deployment", "web", queue, half()))
	const external = "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics " +
		"API: the server could not find the requested resource (get queue.external.metrics.k8s.io)"
	s.reports("web", "FailedGetExternalMetric", external)
	s.reports("web", "SuccessfulRescale", "New size: 2; reason: "+tooMuch)
	s.ready("web", 2)

	const none = "unable to fetch metrics from custom metrics API: " +
		"no custom metrics API (custom.metrics.k8s.io) registered"
	for _, c := range []struct{ name, metric, condition, message, whole string }{
		{"pods", `{"type":"Pods","pods":{"metric":{"name":"rps"},"target":{"type":"AverageValue","averageValue":"1"}}}`,
			"FailedGetPodsMetric", "unable to get metric rps: " + none, "failed to get pods metric value: "},
		{"object", `{"type":"Object","object":{"metric":{"name":"rps"},` +
			`"describedObject":{"kind":"Service","name":"s"},"target":{"type":"Value","value":"1"}}}`, "FailedGetObjectMetric",
			"unable to get metric rps on Service default/s: " + none, "failed to get object metric value: "},
		{"external", `{"type":"External","external":{"metric":{"name":"queue"},` +
			`"target":{"type":"AverageValue","averageValue":"1"}}}`, "FailedGetExternalMetric", external,
			"failed to get queue external metric value: failed to get queue external metric: "},
	} {
		s.Create(deployments, deployment(c.name, 1, "1"))
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"Metric","metric":` + c.metric + `}`)); err != nil {
			t.Fatal(err)
		}
		s.Create(autoscalers, autoscaler("apps/v1", "Deployment", c.name, u.Object["metric"]))
		s.withCondition(c.name, "ScalingActive=False "+c.condition)
		s.reports(c.name, c.condition, c.message)
		s.reports(c.name, "FailedComputeMetricsReplicas",
			"invalid metrics (1 invalid out of 1), first error is: "+c.whole+c.message)
	}
	s.Create(autoscalers, autoscaler("apps/v1", "Deployment", "missing", half()))
	s.reports("missing", "FailedGetScale", `deployments.apps "missing" not found`)
	s.withCondition("missing", "AbleToScale=False FailedGetScale")
	s.Create(autoscalers, autoscaler("batch/v1", "Deployment", "odd", half()))
	s.reports("odd", "FailedGetScale", `no matches for kind "Deployment" in group "batch"`)
	s.Create(autoscalers, autoscaler("batch/v1", "CronJob", "cron", half()))
	s.reports("cron", "FailedGetScale", "the server could not find the requested resource")
}

// TestAmbiguous checks the condition of two autoscalers for the same pods.
func TestAmbiguous(t *testing.T) {
	s := start(t)
	s.Create(deployments, deployment("web", 1, "500m"))
	s.ready("web", 1)
	s.clock.Advance(time.Minute)
	s.Create(autoscalers, autoscaler("apps/v1", "Deployment", "web", half()))
	s.withCondition("web", "ScalingActive=True ValidMetricFound")
	second := autoscaler("apps/v1", "Deployment", "web", half())
	second.SetName("again")
	s.Create(autoscalers, second)
	a := s.withCondition("again", "ScalingActive=False AmbiguousSelector")
	s.reports("again", "AmbiguousSelector",
		"pods by selector app=web are controlled by more than one HPA (e.g. [default/again default/web])")
	s.Delete(autoscalers, a, "")
	s.clock.Advance(time.Minute)
	s.withCondition("web", "ScalingActive=True ValidMetricFound")
}

// TestCustom checks that any kind with a scale may be a target, unless its scale has no selector.
func TestCustom(t *testing.T) {
	s := start(t)
	d := controltest.Definition("fleets", "Fleet", "Namespaced")
	versions, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
	versions[0].(object)["subresources"] = object{"scale": object{
		"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
		"labelSelectorPath": ".status.selector",
	}}
	_ = unstructured.SetNestedSlice(d.Object, versions, "spec", "versions")
	s.Create(controltest.Definitions, d)
	s.Until(controltest.Definitions, "", "fleets.stable.example.com")
	fleet := func(name, selector string) {
		f := controltest.Object("stable.example.com/v1", "Fleet", "default", name)
		f.Object["spec"] = object{"replicas": int64(1)}
		if selector != "" {
			f.Object["status"] = object{"selector": selector, "replicas": int64(1)}
		}
		s.Create(controltest.Fleets, f)
	}
	fleet("good", "app=fleet")
	fleet("bare", "")
	fleet("bad", "app in (")
	pod := controltest.Object("v1", "Pod", "default", "p")
	pod.SetLabels(map[string]string{"app": "fleet"})
	pod.SetAnnotations(map[string]string{"kwok.x-k8s.io/usage-cpu": "1"})
	pod.Object["spec"] = object{"containers": []any{
		object{"name": "main", "image": "i", "resources": object{"requests": object{"cpu": "1"}}},
	}}
	s.Create(controltest.Pods, pod)
	s.When(controltest.Pods, "default", "it to run", func(all map[string]*unstructured.Unstructured) bool {
		phase, _, _ := unstructured.NestedString(all["p"].Object, "status", "phase")
		return phase == "Running"
	})
	s.clock.Advance(time.Minute)
	// The version does not matter.
	for _, name := range []string{"good", "bare", "bad"} {
		s.Create(autoscalers, autoscaler("stable.example.com/v7", "Fleet", name, half()))
	}
	s.When(controltest.Fleets, "default", "two replicas", func(all map[string]*unstructured.Unstructured) bool {
		n, _, _ := unstructured.NestedInt64(all["good"].Object, "spec", "replicas")
		return n == 2
	})
	fields := s.owners("good")
	if !strings.Contains(fields, "kube-controller-manager/scale") {
		t.Errorf("who has scaled it: %s", fields)
	}
	s.reports("bare", "SelectorRequired", "selector is required")
	s.withCondition("bare", "ScalingActive=False InvalidSelector")
	s.withCondition("bad", "ScalingActive=False InvalidSelector")
}

// owners returns the managers of a fleet's fields, with their subresources.
func (s *suite) owners(name string) (out string) {
	s.Helper()
	f, err := s.In(controltest.Fleets, "default").Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	for _, m := range f.GetManagedFields() {
		out += m.Manager + "/" + m.Subresource + " "
	}
	return out
}

// TestEarlierRelease checks that an autoscaler of 1.36 has neither the condition ScaledToZero nor an observed
// generation.
func TestEarlierRelease(t *testing.T) {
	s := start(t, func(c *bowsprit.Config) { c.Emulation.Version = []string{"1.36"} })
	s.Create(deployments, deployment("few", 1, "1m"))
	a := autoscaler("apps/v1", "Deployment", "few", half())
	_ = unstructured.SetNestedField(a.Object, int64(3), "spec", "minReplicas")
	s.Create(autoscalers, a)
	few := s.withCondition("few", "AbleToScale=True SucceededRescale")
	if got := strings.Join(conditions(few), " "); strings.Contains(got, "ScaledToZero") {
		t.Errorf("conditions: %s", got)
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(few.Object, "status", "observedGeneration"); found {
		t.Error("it has an observed generation")
	}
}
