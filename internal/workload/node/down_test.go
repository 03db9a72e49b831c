package node_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

// many is the number of pods.
const many = 60

// moved is a server with nodes and pods, and a clock that the test moves.
type moved struct {
	*testing.T
	*kubernetes.Clientset
	config *rest.Config
	clock  *testserver.Clock
}

func startMoved(t *testing.T) *moved {
	t.Helper()
	m := &moved{T: t, clock: testserver.NewClock()}
	server := testserver.Start(t, testserver.WithWorkloads("nodes=3", "cpu=1000"), testserver.WithClock(m.clock))
	m.config = server.RESTConfig()
	var err error
	if m.Clientset, err = kubernetes.NewForConfig(m.config); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "web"}
	_, err = m.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(many)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m.until("all pods to be available", 0, func() string { return m.available() })
	return m
}

// until waits until f returns "", and advances the clock by step before each attempt.
func (m *moved) until(desc string, step time.Duration, f func() string) {
	m.Helper()
	deadline := time.After(controltest.Patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		m.clock.Advance(step)
		why := f()
		if why == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			m.Fatalf("waited for %s: %s", desc, why)
		}
	}
}

func (m *moved) available() string {
	d, err := m.AppsV1().Deployments("default").Get(m.Context(), "web", metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	if d.Status.AvailableReplicas != many || d.Status.Replicas != many {
		return fmt.Sprintf("%d of %d are available, %d there", d.Status.AvailableReplicas, many, d.Status.Replicas)
	}
	return ""
}

// pods counts pods by node, with terminating ones under "deleted". It checks that addresses are unique.
func (m *moved) pods() map[string]int {
	m.Helper()
	list, err := m.CoreV1().Pods("default").List(m.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		m.Fatal(err)
	}
	count, addresses := map[string]int{}, map[string]string{}
	for _, p := range list.Items {
		if other := addresses[p.Status.PodIP]; other != "" && p.Status.PodIP != "" {
			m.Errorf("%s and %s have the address %s", p.Name, other, p.Status.PodIP)
		}
		addresses[p.Status.PodIP] = p.Name
		if p.DeletionTimestamp != nil {
			count["deleted"]++
			continue
		}
		count[p.Spec.NodeName]++
	}
	return count
}

func (m *moved) setDown(value string) {
	m.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"bowsprit.dev/simulate-down":%s}}}`, value)
	if _, err := m.CoreV1().Nodes().Patch(m.Context(), "node-0", types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		m.Fatal(err)
	}
}

// TestDownAndBack checks that a node with an outage loses its pods to other nodes, and is a node like the others after
// its return, without lost or duplicate pods.
func TestDownAndBack(t *testing.T) {
	t.Parallel()
	m := startMoved(t)
	if on := m.pods(); on["node-0"] == 0 {
		t.Fatalf("pods by node: %v", on)
	}
	m.setDown(`"true"`)
	m.until("the pods to be elsewhere", time.Minute, func() string {
		if on := m.pods(); on["node-0"] > 0 || on["node-1"]+on["node-2"] != many {
			return fmt.Sprint(on)
		}
		return ""
	})
	m.setDown("null")
	m.until("the old pods to be gone", 0, func() string {
		if on := m.pods(); on["deleted"] > 0 || on["node-1"]+on["node-2"] != many {
			return fmt.Sprint(on)
		}
		return m.available()
	})
	m.until("a node without taints", 0, func() string {
		n, err := m.CoreV1().Nodes().Get(t.Context(), "node-0", metav1.GetOptions{})
		if err != nil || len(n.Spec.Taints) > 0 {
			return fmt.Sprint(n.Spec.Taints, err)
		}
		return ""
	})
	scale := []byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, many+30))
	if _, err := m.AppsV1().Deployments("default").Patch(t.Context(), "web", types.MergePatchType, scale,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	m.until("new pods on the node that is back", 0, func() string {
		if on := m.pods(); on["node-0"] == 0 || on["node-0"]+on["node-1"]+on["node-2"] != many+30 {
			return fmt.Sprint(on)
		}
		return ""
	})
}
