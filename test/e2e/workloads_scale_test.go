package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// scaleLimit bounds the measured times; only a hang reaches it.
const scaleLimit = 30 * time.Minute

// simulated is a control plane with simulated nodes: one process of ours, or five of Kubernetes' and kwok.
type simulated struct {
	name   string
	config *rest.Config
	pids   []int
	ended  <-chan string // names of processes that ended too early; nil if other code checks them
}

// figures are the measurements of one control plane.
type figures struct {
	one, all time.Duration // until a Deployment of one pod is available, and all pods are
	resident int64         // memory of all processes afterwards, in bytes
}

// TestWorkloadsScale creates a Deployment of one pod and then Deployments of a thousand each, E2E_PODS in all, on
// E2E_NODES nodes, and measures the time until all are available and the memory then. With E2E_KUBE, a folder with
// kube-apiserver, kube-controller-manager, kube-scheduler and kwok, it compares these and an etcd, and with E2E_LIMITS
// once more with the limits that their clients ship with. The target bench-workloads runs it.
func TestWorkloadsScale(t *testing.T) {
	pods, err := strconv.Atoi(os.Getenv("E2E_PODS"))
	if err != nil {
		t.Skip("E2E_PODS says how many")
	}
	nodes, err := strconv.Atoi(os.Getenv("E2E_NODES"))
	if err != nil {
		t.Fatalf("E2E_NODES: %v", err)
	}
	var ours figures
	t.Run("ours", func(t *testing.T) {
		p := startServer(t, "--data-dir="+t.TempDir(), fmt.Sprintf("--simulate=nodes=%d", nodes))
		ours = measure(t, simulated{name: "bowsprit", config: p.config(t), pids: []int{p.cmd.Process.Pid}}, nodes, pods)
	})
	folder := os.Getenv("E2E_KUBE")
	if folder == "" || t.Failed() {
		return
	}
	limits := []bool{false}
	if os.Getenv("E2E_LIMITS") != "" {
		limits = append(limits, true)
	}
	for _, limited := range limits {
		name := "kwok" // the test's paths contain its name, and kwok's --config ends at a comma
		if limited {
			name += "-limited"
		}
		t.Run(name, func(t *testing.T) {
			theirs := measure(t, startKwok(t, folder, nodes, limited), nodes, pods)
			t.Logf("ratios: one pod %.1f, all pods %.1f, memory %.1f", ratio(theirs.one, ours.one),
				ratio(theirs.all, ours.all), float64(theirs.resident)/float64(ours.resident))
		})
	}
}

func ratio(a, b time.Duration) float64 { return a.Seconds() / b.Seconds() }

// measure waits until all nodes are ready, and then for pods.
func measure(t *testing.T, s simulated, nodes, pods int) (f figures) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(bounded(t, scaleLimit))
	defer cancel(nil)
	go func() {
		select {
		case program := <-s.ended:
			cancel(fmt.Errorf("%s has ended", program))
		case <-ctx.Done():
		}
	}()
	client := kubernetes.NewForConfigOrDie(s.config)
	awaitNodes(ctx, t, client, nodes)
	began := time.Now()
	awaitAvailable(ctx, t, client, "one", 1, 1)
	f.one = time.Since(began)
	began = time.Now()
	awaitAvailable(ctx, t, client, "many", max(1, pods/1000), int32(min(pods, 1000)))
	f.all = time.Since(began)
	for _, pid := range s.pids {
		f.resident += resident(t, pid)
	}
	t.Logf("%s: one pod available after %v; %d pods on %d nodes after %v, %.0f a second; %d MB in %d processes", s.name,
		f.one.Round(time.Millisecond), pods, nodes, f.all.Round(10*time.Millisecond), float64(pods)/f.all.Seconds(),
		f.resident>>20, len(s.pids))
	return f
}

// awaitNodes waits until as many nodes are ready.
func awaitNodes(ctx context.Context, t *testing.T, client kubernetes.Interface, n int) {
	t.Helper()
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ready := map[string]bool{}
	note := func(node *corev1.Node) {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				ready[node.Name] = c.Status == corev1.ConditionTrue
			}
		}
	}
	for i := range list.Items {
		note(&list.Items[i])
	}
	w, err := client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for len(ready) < n {
		ev, ok := <-w.ResultChan()
		if !ok {
			t.Fatalf("the watch has ended with %d of %d nodes ready: %v", len(ready), n, context.Cause(ctx))
		}
		if node, is := ev.Object.(*corev1.Node); is {
			note(node)
		}
	}
}

// awaitAvailable creates n Deployments and watches until all pods of all are available.
func awaitAvailable(
	ctx context.Context, t *testing.T, client kubernetes.Interface, name string, n int, replicas int32,
) {
	t.Helper()
	deployments := client.AppsV1().Deployments("default")
	list, err := deployments.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := deployments.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for i := range n {
		labels := map[string]string{"app": fmt.Sprintf("%s-%d", name, i)}
		_, err := deployments.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: labels["app"]}, Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
				},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	done := map[string]bool{}
	for ev := range w.ResultChan() {
		d, ok := ev.Object.(*appsv1.Deployment)
		if ok && strings.HasPrefix(d.Name, name+"-") && d.Status.AvailableReplicas == replicas {
			if done[d.Name] = true; len(done) == n {
				return
			}
		}
	}
	t.Fatalf("the watch has ended with %d of %d Deployments available: %v", len(done), n, context.Cause(ctx))
}

// resident returns how much memory a process holds.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "kB")), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// fakeNode is a node that kwok keeps.
func fakeNode(i int) *corev1.Node {
	name := fmt.Sprintf("node-%d", i)
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{corev1.LabelHostname: name},
		},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
}
