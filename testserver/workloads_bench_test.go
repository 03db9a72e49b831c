package testserver_test

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// BenchmarkPodReady creates a pod on a server that simulates workloads and watches until it is ready.
func BenchmarkPodReady(b *testing.B) {
	client, err := kubernetes.NewForConfig(testserver.Start(b, testserver.WithWorkloads("pods=100000")).RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	pods := client.CoreV1().Pods("default")
	for i := 0; b.Loop(); i++ {
		name := fmt.Sprintf("p%d", i)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		made, err := pods.Create(b.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			b.Fatal(err)
		}
		w, err := pods.Watch(b.Context(), metav1.ListOptions{
			FieldSelector: "metadata.name=" + name, ResourceVersion: made.ResourceVersion,
		})
		if err != nil {
			b.Fatal(err)
		}
		for ev := range w.ResultChan() {
			if p, ok := ev.Object.(*corev1.Pod); ok && podReady(p) {
				break
			}
		}
		w.Stop()
	}
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// BenchmarkWorkloads measures the bytes and goroutines of simulated workloads: the difference between an idle server
// with and one without them. The first server of a process makes the shared data.
func BenchmarkWorkloads(b *testing.B) {
	holds := func(configure ...func(*bowsprit.Config)) (bytes int64, goroutines int) {
		before, had := heap(), runtime.NumGoroutine()
		server := testserver.Start(b, configure...)
		bytes, goroutines = heap()-before, runtime.NumGoroutine()-had
		if err := server.Stop(); err != nil {
			b.Fatal(err)
		}
		return bytes, goroutines
	}
	holds(testserver.WithWorkloads())
	for b.Loop() {
		plain, without := holds()
		bytes, goroutines := holds(testserver.WithWorkloads())
		b.ReportMetric(float64(bytes-plain), "B-more")
		b.ReportMetric(float64(goroutines-without), "goroutines-more")
	}
}
