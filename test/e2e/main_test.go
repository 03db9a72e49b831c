package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expectations under testdata")

// binaries is the directory with the programs under test, bowsprit and kubectl. Only TestMain sets it.
var binaries string

func TestMain(m *testing.M) {
	if alone := os.Getenv(aloneEnv); alone != "" {
		runAlone(alone)
	}
	flag.Parse()
	os.Exit(runTests(m))
}

// runTests builds the programs, unless E2E_BINARIES names a directory with them: linking takes minutes on a busy
// machine.
func runTests(m *testing.M) int {
	if binaries = os.Getenv("E2E_BINARIES"); binaries != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "bowsprit-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binaries = dir
	for name, source := range map[string]string{
		"bowsprit": "github.com/bowsprit/bowsprit/cmd/bowsprit",
		"kubectl":  "github.com/bowsprit/bowsprit/test/e2e/kubectl",
		"etcd":     "github.com/bowsprit/bowsprit/test/e2e/etcd",

		"sample-apiserver": "k8s.io/sample-apiserver",
	} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), source)
		if name == "sample-apiserver" {
			build.Dir = "sample" // a module of its own, with its published libraries
		}
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n", source, err)
			return 1
		}
	}
	return m.Run()
}
