package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/freeport"
	"github.com/bowsprit/bowsprit/internal/testing/page"
)

// reader returns a shell for the commands of a page, with bowsprit and kubectl, and without data of an earlier server.
// It keeps Go's build cache.
func reader(t *testing.T, port string) page.Session {
	t.Helper()
	home, bin := t.TempDir(), t.TempDir()
	for _, name := range []string{"bowsprit", "kubectl"} {
		if err := os.Symlink(os.Args[0], filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return page.Session{
		Dir: home,
		Env: []string{asCommand + "=1", "HOME=" + home, "TMPDIR=" + home, "BOWSPRIT_SECURE_PORT=" + port,
			"GOCACHE=" + strings.TrimSpace(string(cache)), "GOFLAGS=" + os.Getenv("GOFLAGS"),
			"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH")},
		Limit: 5 * time.Minute,
	}
}

// ports matches the ports that a page names. Another test may use the same ports.
var ports = regexp.MustCompile(`\b(6443|1[0-9]{4})\b`)

// alone lists further pages, besides the tutorials, that need only this program and Go.
var alone = []string{
	"README", "docs/admission-manifests", "docs/assistants", "docs/backup", "docs/crd-changes", "docs/encryption",
	"docs/envtest", "docs/first-steps", "docs/instances", "docs/konnectivity", "docs/operations", "docs/output",
	"docs/quickstart", "docs/run-as-pod", "docs/security", "docs/sensitive-fields", "docs/settings",
	"docs/troubleshooting", "docs/which-server", "docs/why", "docs/workloads",
}

// TestDocumentation runs the pages that need only this program and Go, word for word except for the ports.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Concat(tutorials(t), alone) {
		if elsewhere[name] != "" {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			runPage(t, name)
		})
	}
}

// tutorials returns the names of all tutorials.
func tutorials(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/tutorials/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tutorials: %v", err)
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "../../"), ".md")
	}
	return files
}

// runPage runs one page with free ports in place of the ports in its text.
func runPage(t *testing.T, name string) {
	t.Helper()
	file := filepath.Join("..", "..", filepath.FromSlash(name)+".md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]string{}
	for _, port := range ports.FindAllString(string(text), -1) {
		if words[port] == "" {
			words[port] = strconv.Itoa(freeport.Port(t))
		}
	}
	standard, named := words["6443"]
	if !named {
		standard = strconv.Itoa(freeport.Port(t))
	}
	session := reader(t, standard)
	if name == "README" { // its reader has a checkout, where make builds the program first
		words["\nmake run\n```"], words["/home/you"] = "\nbowsprit serve\n```", session.Dir
	}
	session.Run(t, file, words)
}
