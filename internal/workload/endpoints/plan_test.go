package endpoints

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// TestPodWithoutNode plans a service of a pod with an address and no node. As in Kubernetes it is no endpoint, unless
// it is a program of a user.
func TestPodWithoutNode(t *testing.T) {
	t.Parallel()
	svc := &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}}
	svc.Name = "web"
	for scheduler, want := range map[string]int{corev1.DefaultSchedulerName: 0, cluster.LocalScheduler: 1} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{SchedulerName: scheduler}}
		pod.Name = "web-0"
		pod.Status.Phase = corev1.PodRunning
		pod.Status.PodIP, pod.Status.PodIPs = "10.0.0.9", []corev1.PodIP{{IP: "10.0.0.9"}}
		c := planFamily(svc, []*corev1.Pod{pod}, map[string]string{}, nil, discoveryv1.AddressTypeIPv4)
		got := 0
		for _, slice := range c.create {
			got += len(slice.Endpoints)
		}
		if got != want {
			t.Errorf("scheduler %s: %d endpoints, expected %d", scheduler, got, want)
		}
	}
}
