package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// TestMoveFromKubernetes runs docs/tutorials/move.md with a real kube-apiserver (reference), word for word except for
// ports.
func TestMoveFromKubernetes(t *testing.T) {
	t.Parallel()
	if reference == "" {
		t.Skip("E2E_KUBE_APISERVER is not set")
	}
	programs := t.TempDir()
	if err := os.Symlink(reference, filepath.Join(programs, "kube-apiserver")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", "docs", "tutorials", "move.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]string{}
	for _, port := range regexp.MustCompile(`\b1[0-9]{4}\b`).FindAllString(string(text), -1) {
		if words[port] == "" {
			words[port] = strconv.Itoa(freeport.Port(t))
		}
	}
	session := reader(t)
	session.Env = append(session.Env, "PATH="+programs+string(filepath.ListSeparator)+binaries+
		string(filepath.ListSeparator)+os.Getenv("PATH"))
	session.Run(t, file, words)
	t.Cleanup(func() { // before etcd, which kube-apiserver would wait for, for minutes
		_ = exec.Command("pkill", "-KILL", "-f", "--", "--secure-port="+words["16443"]).Run()
	})
}
