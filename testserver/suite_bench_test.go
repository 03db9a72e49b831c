package testserver_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit/testserver"
)

// BenchmarkTest measures a test with a server of its own: the start, a definition, an object, and the stop, without and
// with a watch that is open at the end, like a manager's watches. With -benchtime 100x it is a suite of a hundred
// tests. It also reports the time of the stop.
func BenchmarkTest(b *testing.B) {
	for _, c := range []struct {
		name  string
		watch bool
	}{{"plain", false}, {"watching", true}} {
		b.Run(c.name, func(b *testing.B) {
			var stopping time.Duration
			for b.Loop() {
				server := testserver.Start(b)
				useServer(b, server.RESTConfig(), "a")
				if c.watch {
					client, err := dynamic.NewForConfig(server.RESTConfig())
					if err != nil {
						b.Fatal(err)
					}
					if _, err := client.Resource(crontabs).Watch(b.Context(), metav1.ListOptions{}); err != nil {
						b.Fatal(err)
					}
				}
				start := time.Now()
				if err := server.Stop(); err != nil {
					b.Fatal(err)
				}
				stopping += time.Since(start)
			}
			b.ReportMetric(float64(stopping.Milliseconds())/float64(b.N), "stop-ms/op")
		})
	}
}
