package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binaries is the directory with the programs. TestMain sets it once.
var binaries string

// source is a package in the module of a folder.
type source struct{ folder, name string }

// The programs of all tests. Kubernetes' own are built in the module programs, with the versions that its release has.
var sources = map[string]source{
	"bowsprit":                {"../..", "./cmd/bowsprit"},
	"kubectl":                 {"programs", "k8s.io/kubernetes/cmd/kubectl"},
	"kube-scheduler":          {"programs", "k8s.io/kubernetes/cmd/kube-scheduler"},
	"kube-controller-manager": {"programs", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	"kubelet":                 {"programs", "k8s.io/kubernetes/cmd/kubelet"},
}

// The programs of single tests, which build them by "program".
var (
	helm        = source{"../clients", "helm.sh/helm/v3/cmd/helm"}
	sample      = source{"../e2e/sample", "k8s.io/sample-apiserver"}
	etcd        = source{"../e2e", "go.etcd.io/etcd/server/v3"}
	proxyServer = source{"../konnectivity", "sigs.k8s.io/apiserver-network-proxy/cmd/server"}
	proxyAgent  = source{"../konnectivity", "sigs.k8s.io/apiserver-network-proxy/cmd/agent"}

	kubeAPIServer = source{"programs", "k8s.io/kubernetes/cmd/kube-apiserver"}
	kubeProxy     = source{"programs", "k8s.io/kubernetes/cmd/kube-proxy"}
	coreDNS       = source{"dns", "."} // of pods in the conformance tests
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (int, error) {
	if binaries = os.Getenv("NODE_BINARIES"); binaries == "" {
		dir, err := os.MkdirTemp("", "bowsprit-node-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
		binaries = dir
	}
	for name, from := range sources {
		if err := build(name, from); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

// version sets the release in Kubernetes' programs: kubectl refuses to compare invalid versions.
const version = "-X k8s.io/component-base/version.gitVersion=v1.37.2 -X k8s.io/client-go/pkg/version.gitVersion=v1.37.2"

// build builds a program, unless it exists.
func build(name string, from source) error {
	target := filepath.Join(binaries, name)
	if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	cmd := exec.Command("go", "build", "-o", target, "-ldflags="+version, from.name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Dir, cmd.Stderr = filepath.FromSlash(from.folder), os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w", from.name, err)
	}
	return nil
}

// program returns a step of preparation (see onMachine) that builds a program which few tests use.
func program(name string, from source) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		if err := build(name, from); err != nil {
			t.Fatal(err)
		}
	}
}

// needs returns a step of preparation that skips the test if a program of the machine is missing.
func needs(name string) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("this test needs %s: %v", name, err)
		}
	}
}
