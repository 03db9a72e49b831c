package testserver_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/testserver"
)

// BenchmarkStop stops servers that have served a request, and such that have a watch open.
func BenchmarkStop(b *testing.B) {
	b.Run("idle", func(b *testing.B) { stop(b, false) })
	b.Run("watched", func(b *testing.B) { stop(b, true) })
}

func stop(b *testing.B, watched bool) {
	var spent time.Duration
	for b.Loop() {
		server := testserver.Start(b)
		client, err := kubernetes.NewForConfig(server.RESTConfig())
		if err != nil {
			b.Fatal(err)
		}
		namespaces := client.CoreV1().Namespaces()
		if _, err := namespaces.List(b.Context(), metav1.ListOptions{}); err != nil {
			b.Fatal(err)
		}
		if watched {
			w, err := namespaces.Watch(b.Context(), metav1.ListOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Stop()
			<-w.ResultChan()
		}
		began := time.Now()
		if err := server.Stop(); err != nil {
			b.Fatal(err)
		}
		spent += time.Since(began)
	}
	b.ReportMetric(float64(spent.Microseconds())/1e3/float64(b.N), "ms/stop")
}
