package attack

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

// simulated is a server that simulates workloads.
type simulated struct {
	*controltest.Cluster
	server *testserver.Server
}

// plurals are the resources of the kinds in this test.
var plurals = map[string]string{
	"CustomResourceDefinition": "customresourcedefinitions", "Namespace": "namespaces",
	"ResourceQuota": "resourcequotas",
	"StatefulSet":   "statefulsets", "Deployment": "deployments", "ReplicaSet": "replicasets", "Job": "jobs",
	"CronJob": "cronjobs", "HorizontalPodAutoscaler": "horizontalpodautoscalers", "Service": "services",
	"Endpoints": "endpoints", "EndpointSlice": "endpointslices", "PodDisruptionBudget": "poddisruptionbudgets",
	"Stage": "stages", "Pod": "pods",
}

// resourceOf returns the resource of an object.
func resourceOf(u *unstructured.Unstructured) schema.GroupVersionResource {
	return u.GroupVersionKind().GroupVersion().WithResource(plurals[u.GetKind()])
}

// make creates the objects of a YAML text in the namespace big, if their kind has namespaces.
func (s *simulated) make(text string) {
	s.Helper()
	for _, one := range strings.Split(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(one), &u.Object); err != nil {
			s.Fatal(err)
		}
		switch u.GetKind() {
		case "Namespace", "CustomResourceDefinition", "Stage":
		default:
			u.SetNamespace("big")
		}
		s.Create(resourceOf(u), u)
	}
}

// until waits for a state of an object.
func (s *simulated) until(kind, version, namespace, name, desc string, is func(map[string]any) bool) {
	s.Helper()
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		s.Fatal(err)
	}
	s.When(gv.WithResource(plurals[kind]), namespace, kind+" "+name+": "+desc,
		func(all map[string]*unstructured.Unstructured) bool { return all[name] != nil && is(all[name].Object) })
}

// untilEvents waits for events, in the form "reason name" with the name of the object.
func (s *simulated) untilEvents(want ...string) {
	s.Helper()
	for _, one := range want {
		s.When(controltest.Events, "big", one, func(all map[string]*unstructured.Unstructured) bool {
			for _, e := range all {
				name, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
				if one == fmt.Sprint(e.Object["reason"], " ", name) {
					return true
				}
			}
			return false
		})
	}
}

func has(path ...string) func(map[string]any) bool {
	return func(o map[string]any) bool {
		v, found, _ := unstructured.NestedFieldNoCopy(o, path...)
		return found && v != nil
	}
}

// largest are objects with the largest numbers that validation accepts. The quota keeps the number of pods small.
const largest = `
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: set}, spec: {replicas: 2147483647,
  podManagementPolicy: Parallel, serviceName: x, ordinals: {start: 2147483647}, selector: {matchLabels: {a: s}},
  minReadySeconds: 2147483647,
  template: {metadata: {labels: {a: s}}, spec: {terminationGracePeriodSeconds: 9000000000000000000,
  containers: [{name: c, image: i}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: parallel}, spec: {replicas: 2147483647,
  podManagementPolicy: Parallel, serviceName: x, selector: {matchLabels: {a: p}},
  template: {metadata: {labels: {a: p}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: replicas}, spec: {replicas: 2147483647,
  minReadySeconds: 2147483647, selector: {matchLabels: {a: r}},
  template: {metadata: {labels: {a: r}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: deployment}, spec: {replicas: 2147483647,
  strategy: {rollingUpdate: {maxSurge: 2147483647, maxUnavailable: 2147483647}}, revisionHistoryLimit: 2147483647,
  progressDeadlineSeconds: 2147483647, selector: {matchLabels: {a: d}},
  template: {metadata: {labels: {a: d}}, spec: {containers: [{name: c, image: i}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: job}, spec: {completions: 2147483647, parallelism: 2147483647,
  backoffLimit: 2147483647, activeDeadlineSeconds: 9000000000000000000, ttlSecondsAfterFinished: 2147483647,
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: indexed}, spec: {completions: 100000, parallelism: 100000,
  completionMode: Indexed, backoffLimitPerIndex: 2147483647, maxFailedIndexes: 100000,
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: scaler}, spec: {minReplicas: 2147483647,
  maxReplicas: 2147483647, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: deployment}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: cron}, spec: {schedule: "* * * * *",
  startingDeadlineSeconds: 9000000000000000000, suspend: true,
  jobTemplate: {spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: least}, spec: {minAvailable: 2147483647,
  selector: {}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: most}, spec: {maxUnavailable: 2147483647,
  selector: {}}}`

// hostileStages are templates and expressions of Stages by the names of their pods, and whether an event about the pod
// reports the failure.
var hostileStages = map[string]string{
	"repeat":  `{{repeat 2000000000 "x"}}`,
	"until":   `{{until 300000000 | len}}`,
	"cat":     `{{$x := "xxxxxxxx"}}{{range until 40}}{{$x = cat $x $x}}{{end}}{{len $x}}`,
	"to-json": `{{$x := "x"}}{{range until 100}}{{$x = toJson $x}}{{end}}`,
	"loop":    `{{range 9000000000}}{{range 9000000000}}{{end}}{{end}}`,
}

// hostileKeys are keys of a Stage's matchExpressions. A pod continues without a Stage with a failing key.
var hostileKeys = map[string]string{
	"reduce": `reduce range(34) as $i ([1]; . + .) | length`,
	"nested": `reduce range(34) as $i ({}; {a: ., b: .}) | tojson | length`,
	"last":   `last(range(1000000000))`,
	"times":  `"x" * 1000000000`,
}

const hostilePod = `{apiVersion: v1, kind: Pod, metadata: {name: %[1]s, labels: {stage: %[1]s}},
  spec: {containers: [{name: c, image: i}]}}`

// stage returns a Stage for the pod of its name, added to the built-in behavior.
func stage(name, key, template string) string {
	u := map[string]any{
		"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage",
		"metadata": map[string]any{
			"name": name, "annotations": map[string]any{"bowsprit.dev/simulate-beside": "true"},
		},
		"spec": map[string]any{
			"resourceRef": map[string]any{"apiGroup": "v1", "kind": "Pod"},
			"selector": map[string]any{
				"matchLabels": map[string]any{"stage": name},
				"matchExpressions": []any{
					map[string]any{"key": key, "operator": "Exists"},
				},
			},
			"next": map[string]any{"statusTemplate": template},
		},
	}
	text, _ := yaml.Marshal(u)
	return string(text)
}

// heapMost is by how much the heap may grow, as the largest size that it has had.
const heapMost = 512 << 20

func heapSize() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys
}

// TestSimulated lets all controllers of simulated workloads process objects with the largest numbers, and Stages that
// would take all memory. The server stays responsive, and its heap small. The test does not run in parallel, so that
// the heap is the server's.
func TestSimulated(t *testing.T) {
	server := testserver.Start(t, testserver.WithWorkloads("nodes=3", "zones=3"))
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	s := &simulated{&controltest.Cluster{T: t, Config: server.RESTConfig(), Client: client}, server}
	definition, err := os.ReadFile("../../internal/workload/play/testdata/definition.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.make(string(definition))
	s.make("{apiVersion: v1, kind: Namespace, metadata: {name: big}}\n---\n" +
		"{apiVersion: v1, kind: ResourceQuota, metadata: {name: pods}, spec: {hard: {count/pods: 100}}}")
	s.until("ResourceQuota", "v1", "big", "pods", "is in force", has("status", "hard", "count/pods"))
	s.until("CustomResourceDefinition", "apiextensions.k8s.io/v1", "", "stages.kwok.x-k8s.io", "is served",
		func(o map[string]any) bool { return strings.Contains(fmt.Sprint(o["status"]), "type:Established") })
	before := heapSize()
	s.hostileStages()
	alive(t, server)
	s.largest()
	alive(t, server)
	s.endpoints()
	alive(t, server)
	if grown := int64(heapSize() - before); grown > heapMost {
		t.Errorf("the heap has grown by %d MB, want at most %d", grown>>20, heapMost>>20)
	}
}

func (s *simulated) hostileStages() {
	s.Helper()
	var failed []string
	for name, text := range hostileStages {
		s.make(stage(name, ".metadata.name", "phase: Running\nmessage: '"+text+"'\n"))
		failed = append(failed, "StageFailed "+name)
	}
	for name, key := range hostileKeys {
		s.make(stage(name, key, "phase: Failed\n"))
	}
	for _, all := range []map[string]string{hostileStages, hostileKeys} {
		for name := range all {
			s.until("Stage", "kwok.x-k8s.io/v1alpha1", "", name, "is accepted", has("status", "conditions"))
			s.make(fmt.Sprintf(hostilePod, name))
		}
	}
	s.untilEvents(failed...)
	for name := range hostileKeys {
		s.until("Pod", "v1", "big", name, "runs without its Stage", func(o map[string]any) bool {
			phase, _, _ := unstructured.NestedString(o, "status", "phase")
			return phase == "Running"
		})
	}
}

// largest creates the largest objects and waits until each controller has acted.
func (s *simulated) largest() {
	s.Helper()
	s.make(largest)
	s.until("ResourceQuota", "v1", "big", "pods", "is used up", func(o map[string]any) bool {
		used, _, _ := unstructured.NestedString(o, "status", "used", "count/pods")
		return used == "100"
	})
	for _, name := range []string{"set", "parallel"} {
		s.until("StatefulSet", "apps/v1", "big", name, "has a status", has("status", "observedGeneration"))
	}
	s.until("ReplicaSet", "apps/v1", "big", "replicas", "has a status", has("status", "conditions"))
	s.until("Deployment", "apps/v1", "big", "deployment", "has a status", has("status", "conditions"))
	for _, name := range []string{"job", "indexed"} {
		s.until("Job", "batch/v1", "big", name, "has a status", has("status", "startTime"))
	}
	s.until("HorizontalPodAutoscaler", "autoscaling/v2", "big", "scaler", "has a status", has("status", "conditions"))
	// A pod of a Job has no scale, so the controller may report a failed sync, without an observed generation.
	for _, name := range []string{"least", "most"} {
		s.until("PodDisruptionBudget", "policy/v1", "big", name, "has a status", has("status", "conditions"))
	}
	cron := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
	for _, c := range []struct{ patch, subresource string }{
		{`{"status":{"lastScheduleTime":"0001-02-01T00:00:00Z","lastSuccessfulTime":"0001-02-01T00:00:00Z"}}`, "status"},
		{`{"spec":{"suspend":false}}`, ""},
	} {
		if _, err := s.In(cron, "big").Patch(s.Context(), "cron", "application/merge-patch+json", []byte(c.patch),
			metav1.PatchOptions{}, strings.Fields(c.subresource)...); err != nil {
			s.Fatal(err)
		}
	}
	s.untilEvents("TooManyMissedTimes cron", "SuccessfulCreate cron")
}

// endpoints creates services with thousands of ports and endpoints, which would multiply.
func (s *simulated) endpoints() {
	s.Helper()
	var ports, addresses, servicePorts, endpoints []string
	for i := range 4000 {
		ports = append(ports, fmt.Sprintf("{name: p%d, port: %d}", i, i+1))
		addresses = append(addresses, fmt.Sprintf("{ip: 10.1.%d.%d}", i/250, i%250+1))
	}
	for i := range 2000 {
		servicePorts = append(servicePorts, fmt.Sprintf("{name: p%d, port: %d}", i, i+1))
	}
	for i := range 1000 {
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [10.2.%d.%d]}", i/250, i%250+1))
	}
	s.make("{apiVersion: v1, kind: Service, metadata: {name: bare}, spec: {ports: [{port: 80}]}}\n---\n" +
		"{apiVersion: v1, kind: Endpoints, metadata: {name: bare}, subsets: [{ports: [" + strings.Join(ports, ", ") +
		"], addresses: [" + strings.Join(addresses, ", ") + "]}]}\n---\n" +
		"{apiVersion: v1, kind: Service, metadata: {name: many}, spec: {selector: {a: p}, ports: [" +
		strings.Join(servicePorts, ", ") + "]}}")
	for i := range 5 {
		s.make(fmt.Sprintf("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: own-%d, labels: "+
			"{kubernetes.io/service-name: many, endpointslice.kubernetes.io/managed-by: "+
			"endpointslice-controller.k8s.io}}, addressType: IPv4, ports: [], endpoints: [%s]}", i,
			strings.Join(endpoints, ", ")))
	}
	s.untilEvents("TooManyAddressesToMirror bare")
	s.until("Endpoints", "v1", "big", "many", "is written", has("metadata", "name"))
	s.When(schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}, "big",
		"the service's own slices only", func(all map[string]*unstructured.Unstructured) bool {
			own := 0
			for name := range all {
				if strings.HasPrefix(name, "own-") {
					return false
				}
				if strings.HasPrefix(name, "many-") {
					own++
				}
			}
			return own > 0
		})
}
