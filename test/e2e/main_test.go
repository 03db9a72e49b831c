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

// binaries is the directory with the programs under test, bowsprit and kubectl. TestMain sets it, nothing changes it.
var binaries string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
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
	} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), source)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n", source, err)
			return 1
		}
	}
	return m.Run()
}
