package connect

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// goWords matches words of Go and client-go that mean nothing to users.
var goWords = regexp.MustCompile(`KUBERNETES_MASTER|Go value|Go struct|json:|unmarshal|couldn't get version`)

// TestUnreadable checks that a damaged kubeconfig is reported in words for users, wherever it is named.
func TestUnreadable(t *testing.T) {
	home := machine(t)
	for name, text := range map[string]string{
		"text": "no kubeconfig\n", "list": "[1]", "yaml": "a: [\n",
		"number": "apiVersion: v1\nkind: Config\ncontexts: 7\n",
		"empty":  "", "other": "apiVersion: v1\nkind: Pod\n",
		"bare": "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: b}}]\n",
	} {
		dir := filepath.Join(home, "of-"+name)
		file := filepath.Join(dir, "kubeconfig")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("KUBECONFIG", file)
		for _, args := range [][]string{{"--data-dir=" + dir}, {"--kubeconfig=" + file}, nil} {
			var flags Flags
			cmd := &cobra.Command{}
			flags.Bind(cmd.Flags())
			if err := cmd.ParseFlags(args); err != nil {
				t.Fatal(err)
			}
			_, err := flags.choose()
			if err == nil || !strings.Contains(err.Error(), file) || goWords.MatchString(err.Error()) {
				t.Errorf("%s, %q: %v", name, args, err)
			}
		}
		_, err := FromFile(file)
		if err == nil || !strings.Contains(err.Error(), file) || goWords.MatchString(err.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
