package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/manual"
)

// withoutOutput are the commands without --output: commands that run until a signal, programs with their own flags, and
// commands with text or files as their result.
var withoutOutput = []string{
	"config check", "config print", "convert init", "convert serve", "demo", "docs", "down", "envtest", "etcd",
	"konnectivity-agent", "konnectivity-server", "kube-apiserver", "kubeconfig", "kubectl", "logs", "mcp", "proxy",
	"run", "serve", "snapshot restore", "token delete", "token generate",
}

// TestOutputFlag checks that every command that answers with data has the flag --output, with the same values.
func TestOutputFlag(t *testing.T) {
	t.Parallel()
	root := rootCommand()
	for _, cmd := range manual.Tree(root) {
		if cmd.HasSubCommands() {
			continue
		}
		path := pathBelow(root, cmd)
		flag := cmd.Flags().Lookup("output")
		if (flag == nil) != slices.Contains(withoutOutput, path) {
			t.Errorf("%s: --output is %v", path, flag)
		}
		if flag != nil && (flag.Value.Type() != "form" || flag.Shorthand != "o" || flag.DefValue != "text") {
			t.Errorf("%s: --output is a %s, -%s, by default %q", path, flag.Value.Type(), flag.Shorthand, flag.DefValue)
		}
	}
}

// TestOutputs runs every command with data, and reads its output as a program does: JSON and YAML have the same fields,
// and nothing else is on standard output. docs/output.md describes the fields.
func TestOutputs(t *testing.T) {
	t.Parallel()
	l := newLandscape(t)
	u := l.newUser(t, false, filepath.Dir(l.dataDir))
	t.Cleanup(func() {
		if _, err := u.output(t, []string{"down", "--all"}); err != nil {
			t.Error(err)
		}
	})
	seen := map[string]bool{}
	for _, i := range slices.Concat(invocations, []invocation{
		{path: "why-stuck", args: "namespace none", fails: true},
		{path: "why-denied", args: "get nothing", fails: true},
		{path: "up", args: "ship --ephemeral"},
	}) {
		cmd, _, err := rootCommand().Find(strings.Fields(i.path))
		if err != nil || cmd.Flags().Lookup("output") == nil || strings.Contains(i.args, "--foreground") {
			continue
		}
		seen[i.path] = true
		var results [2]any
		for n, form := range []string{"yaml", "json"} {
			own := strings.NewReplacer("backup.tar", form+".tar", "snapshot.db", form+".db", "=restored", "="+form,
				"ship", "ship-"+form, "abcdef.", form+"00.", "alice", "alice-"+form)
			args := own.Replace(i.args)
			out, err := u.output(t, slices.Concat(strings.Fields(i.path), strings.Fields(args), []string{"-o", form}))
			if err != nil && !i.fails {
				t.Fatalf("%s %s -o %s: %v\n%s", i.path, args, form, err, out)
			}
			if form == "json" {
				err = json.Unmarshal(out, &results[n])
			} else {
				err = yaml.Unmarshal(out, &results[n])
			}
			if err != nil {
				t.Fatalf("%s %s -o %s: %v\n%s", i.path, args, form, err, out)
			}
		}
		fields := shape("", results[0])
		if other := shape("", results[1]); !slices.Equal(fields, other) {
			t.Errorf("%s %s: YAML has %q, JSON %q", i.path, i.args, fields, other)
		}
		onPage(t, i.path, fields)
	}
	for _, cmd := range manual.Tree(rootCommand()) {
		if path := pathBelow(cmd.Root(), cmd); cmd.Flags().Lookup("output") != nil && !seen[path] {
			t.Errorf("%s was not run", path)
		}
	}
}

// output runs a command line and returns its standard output.
func (u *user) output(t *testing.T, args []string) ([]byte, error) {
	t.Helper()
	cmd := command(t, args...)
	cmd.Dir, cmd.Env = u.work, append(cmd.Env, append([]string{"HOME=" + u.home, "TMPDIR=" + u.work}, u.env...)...)
	out, err := cmd.Output()
	if failure := (*exec.ExitError)(nil); errors.As(err, &failure) {
		err = fmt.Errorf("%w: %s", err, failure.Stderr)
	}
	return out, err
}

// opaque are the fields with contents that other pages describe.
var opaque = []string{"kubeconfig", "explanation", "items"}

// shape returns the paths of all fields of a decoded document, sorted.
func shape(at string, v any) (fields []string) {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			path := strings.TrimPrefix(at+"."+name, ".")
			fields = append(fields, path)
			if !slices.Contains(opaque, name) {
				fields = append(fields, shape(path, below)...)
			}
		}
	case []any:
		for _, below := range v {
			fields = append(fields, shape(at+"[]", below)...)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// onPage checks that the section of docs/output.md about a command has the fields of its output.
func onPage(t *testing.T, path string, fields []string) {
	t.Helper()
	_, section, found := strings.Cut(read(t, filepath.Join("..", "..", "docs", "output.md")), "\n## `"+path+"`\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Errorf("docs/output.md has no section about %s", path)
	}
	for _, field := range fields {
		if !strings.Contains(section, "| `"+field+"` |") {
			t.Errorf("the section about %s has no field %s", path, field)
		}
	}
}
