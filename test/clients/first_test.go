package clients

import (
	"context"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	stablev1 "github.com/bowsprit/bowsprit/test/clients/api/stable/v1"
)

// BenchmarkFirstTest measures the work of a suite made by kubebuilder before its first test: start the server, install
// the project's definition, create an object. The stop is reported separately. With $ENVTEST_ASSETS, a directory with
// Kubernetes' own kube-apiserver and etcd, it measures these too.
func BenchmarkFirstTest(b *testing.B) {
	for _, by := range []struct{ name, assets string }{{"bowsprit", assets},
		{"kubernetes", os.Getenv("ENVTEST_ASSETS")}} {
		b.Run(by.name, func(b *testing.B) {
			if by.assets == "" {
				b.Skip("ENVTEST_ASSETS names no directory with Kubernetes' binaries")
			}
			b.Setenv("KUBEBUILDER_ASSETS", by.assets) // overrides an Environment
			var stopping time.Duration
			for b.Loop() {
				env := firstObject(b)
				b.StopTimer()
				start := time.Now()
				if err := env.Stop(); err != nil {
					b.Fatal(err)
				}
				stopping += time.Since(start)
				b.StartTimer()
			}
			b.ReportMetric(stopping.Seconds()/float64(b.N), "stop-s/op")
		})
	}
}

// firstObject starts a server and returns when the first object exists.
func firstObject(b *testing.B) *envtest.Environment {
	b.Helper()
	env := &envtest.Environment{CRDDirectoryPaths: []string{"crontab.yaml"}, ErrorIfCRDPathMissing: true}
	config, err := env.Start()
	if err != nil {
		b.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := stablev1.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Create(context.Background(),
		&stablev1.CronTab{
			ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: "default"},
			Spec:       stablev1.CronTabSpec{CronSpec: "* * * * *"},
		}); err != nil {
		b.Fatal(err)
	}
	return env
}
