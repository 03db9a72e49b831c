package pod_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

// client is a client of a server that simulates workloads.
func client(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// simple returns a pod with annotations, given as keys and values.
func simple(name string, annotations ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/app:1"}}},
	}
	for i := 0; i < len(annotations); i += 2 {
		p.Annotations[annotations[i]] = annotations[i+1]
	}
	return p
}

// create creates a pod in the namespace default and returns a watch of it.
func create(t *testing.T, c *kubernetes.Clientset, p *corev1.Pod) (*corev1.Pod, watch.Interface) {
	t.Helper()
	pods := c.CoreV1().Pods("default")
	made, err := pods.Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := pods.Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + p.Name, ResourceVersion: made.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return made, w
}

// until waits for a state of the pod that a watch is about, or with none for its end.
func until(t *testing.T, w watch.Interface, desc string, is func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	timeout := time.After(controltest.Patience)
	var last *corev1.Pod
	for {
		select {
		case ev := <-w.ResultChan():
			pod, ok := ev.Object.(*corev1.Pod)
			if !ok {
				t.Fatalf("watch: %v", ev.Object)
			}
			if last = pod; is == nil && ev.Type == watch.Deleted || is != nil && is(pod) {
				return pod
			}
		case <-timeout:
			t.Fatalf("waited for %s; the pod is %+v", desc, last)
		}
	}
}

func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// TestPodBecomesReady checks that a pod is scheduled, becomes ready with events, and is removed after its deletion.
func TestPodBecomesReady(t *testing.T) {
	t.Parallel()
	c := client(t, testserver.Start(t, testserver.WithWorkloads()).RESTConfig())
	_, w := create(t, c, simple("web"))
	p := until(t, w, "a ready pod", ready)
	if p.Spec.NodeName != "node-0" || p.Status.Phase != corev1.PodRunning || p.Status.StartTime == nil ||
		!strings.HasPrefix(p.Status.PodIP, "10.24") || p.Status.HostIP == "" {
		t.Errorf("a ready pod: %+v", p.Status)
	}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady,
	} {
		if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == kind && c.Status == corev1.ConditionTrue
		}) {
			t.Errorf("%s is not true: %v", kind, p.Status.Conditions)
		}
	}
	events := untilEvents(t, c, "Scheduled", "Pulled", "Created", "Started")
	if got := events["Scheduled"]; got != "Successfully assigned default/web to node-0" {
		t.Errorf("Scheduled says %q", got)
	}
	if err := c.CoreV1().Pods("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, w, "the end of the pod", nil)
	untilEvents(t, c, "Killing")
}

// untilEvents waits for events with the reasons and returns their messages.
func untilEvents(t *testing.T, c *kubernetes.Clientset, reasons ...string) map[string]string {
	t.Helper()
	w, err := c.CoreV1().Events("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	byType := map[string]string{}
	timeout := time.After(controltest.Patience)
	for {
		if !slices.ContainsFunc(reasons, func(r string) bool { _, ok := byType[r]; return !ok }) {
			return byType
		}
		select {
		case ev := <-w.ResultChan():
			if e, ok := ev.Object.(*corev1.Event); ok {
				byType[e.Reason] = e.Message
			}
		case <-timeout:
			t.Fatalf("waited for events %v, have %v", reasons, byType)
		}
	}
}

// TestPodWaitsForNode checks that a pod without room has the reason in its status, and is scheduled when a client
// creates a node.
func TestPodWaitsForNode(t *testing.T) {
	t.Parallel()
	c := client(t, testserver.Start(t, testserver.WithWorkloads("cpu=1")).RESTConfig())
	large := simple("large")
	large.Spec.NodeSelector = map[string]string{"size": "large"}
	_, w := create(t, c, large)
	want := "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. " +
		"preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
	until(t, w, "word of why", func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Reason == "Unschedulable" && c.Message == want
		})
	})
	if _, err := c.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "large", Labels: map[string]string{"size": "large"},
		Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if p := until(t, w, "a ready pod", ready); p.Spec.NodeName != "large" {
		t.Errorf("the pod is on %s", p.Spec.NodeName)
	}
}

// TestPodIsRefused checks that a kubelet rejects a pod that a client has bound to a node without room or with its port
// in use, and accepts the next one after the other pod is gone.
func TestPodIsRefused(t *testing.T) {
	t.Parallel()
	c := client(t, testserver.Start(t, testserver.WithWorkloads("cpu=1")).RESTConfig())
	on := func(name string, change func(*corev1.Container)) (*corev1.Pod, watch.Interface) {
		p := simple(name)
		p.Spec.NodeName = "node-0"
		change(&p.Spec.Containers[0])
		return create(t, c, p)
	}
	port := func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}} }
	_, first := on("first", port)
	until(t, first, "a ready pod", ready)
	refused := func(name, reason, message string, change func(*corev1.Container)) {
		_, w := on(name, change)
		p := until(t, w, "a pod that is over", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
		if p.Status.Reason != reason || p.Status.Message != "Pod was rejected: "+message ||
			len(p.Status.ContainerStatuses) > 0 || p.Status.PodIP != "" {
			t.Errorf("a pod that is refused: %+v", p.Status)
		}
		if got := untilEvents(t, c, reason)[reason]; got != message {
			t.Errorf("the event says %q", got)
		}
	}
	refused("second", "NodePorts",
		"Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports", port)
	refused("large", "OutOfcpu", "Node didn't have enough resource: cpu, requested: 2000, used: 0, capacity: 1000",
		func(c *corev1.Container) {
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		})
	if err := c.CoreV1().Pods("default").Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, first, "the end of the pod", nil)
	_, third := on("third", port)
	until(t, third, "a ready pod", ready)
}

// TestPodIsDebugged checks that an ephemeral container starts in a running pod, as for kubectl debug.
func TestPodIsDebugged(t *testing.T) {
	t.Parallel()
	c := client(t, testserver.Start(t, testserver.WithWorkloads()).RESTConfig())
	_, w := create(t, c, simple("web"))
	p := until(t, w, "a ready pod", ready)
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "registry.example.com/debug:1"},
	}}
	pods := c.CoreV1().Pods("default")
	if _, err := pods.UpdateEphemeralContainers(t.Context(), "web", p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, w, "a container that runs", func(p *corev1.Pod) bool {
		s := p.Status.EphemeralContainerStatuses
		return ready(p) && len(s) == 1 && s[0].Name == "debug" && s[0].State.Running != nil
	})
}

// Pods of another scheduler are left alone; with a node they run like others.
func TestOtherScheduler(t *testing.T) {
	t.Parallel()
	c := client(t, testserver.Start(t, testserver.WithWorkloads()).RESTConfig())
	other := simple("other")
	other.Spec.SchedulerName = "mine"
	_, w := create(t, c, other)
	_, first := create(t, c, simple("first")) // once it is ready, the other one has been checked
	until(t, first, "a ready pod", ready)
	p, err := c.CoreV1().Pods("default").Get(t.Context(), "other", metav1.GetOptions{})
	if err != nil || p.Spec.NodeName != "" || len(p.Status.Conditions) != 0 {
		t.Fatalf("a pod of another scheduler: %v, %v", p, err)
	}
	if err := c.CoreV1().Pods("default").Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "other"}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-0"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, w, "a ready pod", ready)
}

// TestClockMoves checks that moving the clock makes a slow pod ready, and evicts the pods of a silent node.
func TestClockMoves(t *testing.T) {
	t.Parallel()
	clock := testserver.NewClock()
	c := client(t, testserver.Start(t, testserver.WithWorkloads(), testserver.WithClock(clock)).RESTConfig())
	_, w := create(t, c, simple("slow", "bowsprit.dev/simulate-start-delay", "1000h"))
	until(t, w, "a pod that starts", func(p *corev1.Pod) bool { return p.Status.StartTime != nil })
	clock.Advance(1001 * time.Hour)
	until(t, w, "a ready pod", ready)
	down := []byte(`{"metadata":{"annotations":{"bowsprit.dev/simulate-down":"true"}}}`)
	if _, err := c.CoreV1().Nodes().Patch(t.Context(), "node-0", "application/merge-patch+json", down,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	stop := controltest.Advancing(clock, time.Minute)
	until(t, w, "a pod that is not ready", func(p *corev1.Pod) bool { return !ready(p) })
	until(t, w, "a pod that is evicted", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	stop()
	up := []byte(`{"metadata":{"annotations":{"bowsprit.dev/simulate-down":null}}}`)
	if _, err := c.CoreV1().Nodes().Patch(t.Context(), "node-0", "application/merge-patch+json", up,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, w, "the end of the pod", nil)
}
