package measure

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestOfPod checks that running containers have the usage of their pod's annotations.
func TestOfPod(t *testing.T) {
	t.Parallel()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, c := range []struct{ cpu, memory, want string }{
		{"", "", "main 1m 1Mi|proxy 1m 1Mi"},
		{"250m", "64Mi", "main 250m 64Mi|proxy 250m 64Mi"},
		{"main=2", "proxy=3Gi, main=10M", "main 2 10M|proxy 1m 3Gi"},
		{"much", "-5", "main 1m 1Mi|proxy 1m 1Mi"},
	} {
		pod := &corev1.Pod{
			Spec: corev1.PodSpec{
				Containers:     []corev1.Container{{Name: "main"}, {Name: "done"}},
				InitContainers: []corev1.Container{{Name: "proxy"}},
			},
			Status: corev1.PodStatus{
				Phase:                 corev1.PodRunning,
				ContainerStatuses:     []corev1.ContainerStatus{{Name: "main", State: running}, {Name: "done"}},
				InitContainerStatuses: []corev1.ContainerStatus{{Name: "proxy", State: running}},
			},
		}
		pod.Annotations = map[string]string{cpuAnnotation: c.cpu, memoryAnnotation: c.memory}
		var got []string
		for _, one := range OfPod(pod) {
			got = append(got, fmt.Sprintf("%s %s %s", one.Name, one.Usage.Cpu(), one.Usage.Memory()))
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q, %q: %q, want %q", c.cpu, c.memory, got, c.want)
		}
		pod.Status.Phase = corev1.PodSucceeded
		if got := OfPod(pod); len(got) > 0 {
			t.Errorf("a pod that has ended uses %v", got)
		}
	}
}

// TestManyContainers reads an annotation that names each of 10,000 containers.
func TestManyContainers(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "c%d=%dm,", i, i)
	}
	s := read(text.String(), defaultCPU)
	for i := range 10_000 {
		if q := s.of(fmt.Sprint("c", i)); q.MilliValue() != int64(i) {
			t.Fatalf("container %d uses %s", i, q.String())
		}
	}
	for text, want := range map[string]string{
		"": "1m", "2": "2", "c0=3,2": "3", "2,c0=3": "2", "c0=x,c0=4": "4", "x,c1=5": "1m", "c0=-1, c0 = 6": "6",
	} {
		s := read(text, defaultCPU)
		if q := s.of("c0"); q.String() != want {
			t.Errorf("%q: %s, want %s", text, q.String(), want)
		}
	}
}
