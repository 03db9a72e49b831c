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

// binaries is the directory with the programs. TestMain sets it, nothing changes it.
var binaries string

// sources are the packages of the programs. What begins with a dot is a folder of the root module; the others are built
// in the module programs, with the versions that Kubernetes' own release has.
var sources = map[string]string{
	"bowsprit":                "./cmd/bowsprit",
	"kubectl":                 "k8s.io/kubernetes/cmd/kubectl",
	"kube-scheduler":          "k8s.io/kubernetes/cmd/kube-scheduler",
	"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
	"kubelet":                 "k8s.io/kubernetes/cmd/kubelet",
}

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
	for name, source := range sources {
		target := filepath.Join(binaries, name)
		if _, err := os.Stat(target); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		build := exec.Command("go", "build", "-o", target, source)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Dir = "programs"
		if source[0] == '.' {
			build.Dir = filepath.Join("..", "..")
		}
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return 0, fmt.Errorf("build %s: %w", source, err)
		}
	}
	return m.Run(), nil
}
