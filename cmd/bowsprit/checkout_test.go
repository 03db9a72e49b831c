package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ownModule is a program of a user, which imports this module without requiring it.
const ownModule = `package main

import "github.com/bowsprit/bowsprit"

func main() { println(bowsprit.Version().Kubernetes) }
`

// TestCheckout runs the workspace recipe of docs/faq.md, for a clone of this repository beside a user's module. Nothing
// is fetched.
func TestCheckout(t *testing.T) {
	t.Parallel()
	const recipe = "go work init . ../bowsprit\n"
	if !strings.Contains(read(t, filepath.Join("..", "..", "docs", "faq.md")), "```text\n"+recipe) {
		t.Fatal("docs/faq.md has another recipe")
	}
	clone, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	above := t.TempDir()
	own := filepath.Join(above, "own")
	if err := errors.Join(os.Mkdir(own, 0o700), os.Symlink(clone, filepath.Join(above, "bowsprit")),
		os.WriteFile(filepath.Join(own, "go.mod"), []byte("module example.com/own\n\ngo 1.26.0\n"), 0o600),
		os.WriteFile(filepath.Join(own, "main.go"), []byte(ownModule), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{strings.TrimSpace(recipe), "go list -deps ."} {
		words := strings.Fields(line)
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Dir, cmd.Env = own, append(os.Environ(), "GOWORK=", "GOPROXY=off", "GOFLAGS=-buildvcs=false")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v %s", line, err, out)
		}
		if words[1] == "list" && !strings.Contains(string(out), "github.com/bowsprit/bowsprit/internal/server\n") {
			t.Errorf("%s: %s", line, out)
		}
	}
}
