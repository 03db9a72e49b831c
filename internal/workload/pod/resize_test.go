package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestResize resizes a running pod: the resources are allocated, then applied, with a restart if the container's policy
// requires one. Without room the resize is deferred until there is.
func TestResize(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy   corev1.ResourceResizeRestartPolicy
		full     bool
		restarts int32
	}{
		"in place":   {policy: corev1.NotRequired},
		"restarting": {policy: corev1.RestartContainer, restarts: 1},
		"deferred":   {policy: corev1.NotRequired, full: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := plainPod()
			container := &pod.Spec.Containers[0]
			container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
			container.ResizePolicy = []corev1.ContainerResizePolicy{
				{ResourceName: corev1.ResourceCPU, RestartPolicy: c.policy}}
			m := &memory{}
			advance := func(h host) step {
				s := next(pod, noon, h, m)
				pod.Status = *s.status
				return s
			}
			advance(host{})
			expectCPU(t, pod, "100m", "100m")
			container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("150m")}
			pod.Generation++
			if c.full {
				full := host{fits: func(*corev1.Pod) string { return "no room" }}
				s := advance(full)
				pending := conditionOf(&pod.Status, corev1.PodResizePending)
				if pending == nil || pending.Reason != corev1.PodReasonDeferred || pending.Message != "no room" ||
					len(s.events) != 1 || !s.deferred || s.wait != deferredRetry {
					t.Fatalf("a deferred resize: %+v, %+v", pending, s)
				}
				if s := advance(full); s.changed || len(s.events) > 0 || !s.deferred {
					t.Errorf("a deferred resize changes: %+v", s)
				}
				expectCPU(t, pod, "100m", "100m")
			}
			if s := advance(host{}); s.wait <= 0 || s.deferred {
				t.Errorf("a resize ends with its allocation: %+v", s)
			}
			if conditionOf(&pod.Status, corev1.PodResizeInProgress) == nil ||
				conditionOf(&pod.Status, corev1.PodResizePending) != nil {
				t.Errorf("conditions of a resize: %+v", pod.Status.Conditions)
			}
			expectCPU(t, pod, "150m", "100m")
			advance(host{})
			if conditionOf(&pod.Status, corev1.PodResizeInProgress) != nil {
				t.Errorf("conditions after a resize: %+v", pod.Status.Conditions)
			}
			expectCPU(t, pod, "150m", "150m")
			if s := &pod.Status.ContainerStatuses[0]; s.RestartCount != c.restarts || s.State.Running == nil {
				t.Errorf("%d restarts, want %d", s.RestartCount, c.restarts)
			}
			if got := pod.Status.AllocatedResources[corev1.ResourceCPU]; got.String() != "150m" {
				t.Errorf("the pod has %s", got.String())
			}
			if s := advance(host{}); s.changed || len(s.events) > 0 {
				t.Errorf("a resized pod changes: %+v", s)
			}
		})
	}
}

// expectCPU checks the allocated and the present CPU of the container.
func expectCPU(t *testing.T, pod *corev1.Pod, allocated, present string) {
	t.Helper()
	s := &pod.Status.ContainerStatuses[0]
	granted := s.AllocatedResources[corev1.ResourceCPU]
	if got := granted.String(); got != allocated {
		t.Errorf("allocated %s, want %s", got, allocated)
	}
	if got := s.Resources.Requests.Cpu().String(); got != present {
		t.Errorf("present %s, want %s", got, present)
	}
}
