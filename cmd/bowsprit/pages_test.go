package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/freeport"
	"github.com/bowsprit/bowsprit/internal/testing/page"
)

// reader returns a shell for the commands of a page: bowsprit and kubectl are there, and nothing of an earlier server.
// Go keeps what it has built.
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

// ports are those that a page names, which another test may have.
var ports = regexp.MustCompile(`\b(6443|1[0-9]{4})\b`)

// TestPages runs the pages that need nothing but this program and Go, word for word but for the ports.
func TestPages(t *testing.T) {
	t.Parallel()
	tutorials, err := filepath.Glob("../../docs/tutorials/*.md")
	if err != nil || len(tutorials) == 0 {
		t.Fatalf("no tutorials: %v", err)
	}
	for _, file := range append(tutorials, "../../docs/first-steps.md") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".md"), func(t *testing.T) {
			t.Parallel()
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
			reader(t, standard).Run(t, file, words)
		})
	}
}
