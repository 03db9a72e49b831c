package connect

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// choosing are the functions of client-go that choose a server by kubectl's files or the pod's service account.
var choosing = regexp.MustCompile(`\b(BuildConfigFromFlags|BuildConfigFromKubeconfigGetter|InClusterConfig|` +
	`NewDefaultClientConfigLoadingRules|New\w*DeferredLoadingClientConfig|GetConfig(OrDie)?)\(`)

// TestOnlyHere looks for commands that choose a server by another rule than Rule.
func TestOnlyHere(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir("..", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") ||
			filepath.Dir(file) == filepath.Join("..", "connect") ||
			filepath.Base(file) == "konnectivity_server.go" { // as upstream's: --kubeconfig, else the pod's account
			return err
		}
		files++
		text, err := os.ReadFile(file)
		if found := choosing.Find(text); found != nil {
			t.Errorf("%s uses %s: have connect choose", file, found)
		}
		return err
	})
	if err != nil || files < 50 {
		t.Errorf("%d files: %v", files, err)
	}
}
