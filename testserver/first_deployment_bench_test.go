package testserver_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/testserver"
)

// begun is about when the process has.
var begun = time.Now()

// BenchmarkFirstDeployment measures the wait of a suite with one test: it starts a server that simulates workloads,
// creates a Deployment of one pod and watches until the pod is available. Run it alone, with -benchtime 1x, because
// only the first run of a process counts.
func BenchmarkFirstDeployment(b *testing.B) {
	for b.Loop() {
		client, err := kubernetes.NewForConfig(testserver.Start(b, testserver.WithWorkloads()).RESTConfig())
		if err != nil {
			b.Fatal(err)
		}
		deployments := client.AppsV1().Deployments("default")
		w, err := deployments.Watch(b.Context(), metav1.ListOptions{})
		if err != nil {
			b.Fatal(err)
		}
		posted := time.Now()
		if _, err := deployments.Create(b.Context(), deployment("first", 1), metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		for ev := range w.ResultChan() {
			if d, ok := ev.Object.(*appsv1.Deployment); ok && d.Status.AvailableReplicas == 1 {
				break
			}
		}
		w.Stop()
		b.ReportMetric(float64(time.Since(posted).Milliseconds()), "ms-from-POST")
		b.ReportMetric(float64(time.Since(begun).Milliseconds()), "ms-from-start")
	}
}
