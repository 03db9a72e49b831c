package clients

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// assets is the directory with kube-apiserver, etcd and kubectl: $KUBEBUILDER_ASSETS, or a directory made by TestMain.
// It never changes.
var assets string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	if assets = os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "bowsprit-clients-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	assets = filepath.Join(dir, "assets")
	binary := filepath.Join(dir, "bowsprit")
	for _, step := range [][]string{
		{"go", "-C", "../..", "build", "-o", binary, "./cmd/bowsprit"},
		{binary, "envtest", assets},
	} {
		if out, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %v\n%s", step, err, out)
			return 1
		}
	}
	return m.Run()
}

// start starts a server with the page's definition. It ends with the test.
func start(t *testing.T) *rest.Config {
	t.Helper()
	env := &envtest.Environment{
		BinaryAssetsDirectory: assets, CRDDirectoryPaths: []string{"crontab.yaml"}, ErrorIfCRDPathMissing: true,
	}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	config.QPS = -1
	return config
}

// limit ends hung tests; it measures nothing.
const limit = 3 * time.Minute

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// until calls f repeatedly until it returns true.
func until(ctx context.Context, t *testing.T, desc string, f func() (bool, error)) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := f()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not in time; last error: %v", desc, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
