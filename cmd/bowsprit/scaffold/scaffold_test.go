package scaffold

import (
	"bytes"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func run(args ...string) (out, notes string, err error) {
	cmd := Command("v1.2.3")
	var stdout, stderr bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err = cmd.Execute()
	return stdout.String(), stderr.String(), err
}

// TestProject writes a project. test/importers/client-go builds one and runs it.
func TestProject(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "ship")
	out, notes, err := run("sea-ship", "--api=sea.example.com/v1beta1", "--module=example.com/fleet/ship",
		"--replace=../../..", "--dir="+dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{".gitignore", "README.md", "go.mod", "kinds.go", "main.go", "main_test.go",
		filepath.Join("manifests", "deployment.yaml"), filepath.Join("manifests", "example.yaml")} {
		if !strings.Contains(out, filepath.Join(dir, file)+"\n") {
			t.Errorf("%s is not said to be written: %s", file, out)
		}
	}
	if !strings.Contains(notes, "cd "+dir+"\n") {
		t.Errorf("the notes are %q", notes)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := format.Source(source); err != nil || !bytes.Equal(source, want) {
			t.Errorf("%s is not formatted: %v", file, err)
		}
	}
	kinds, err := os.ReadFile(filepath.Join(dir, "kinds.go"))
	if err != nil || !strings.Contains(string(kinds), "type SeaShip struct {") {
		t.Errorf("%v %s", err, kinds)
	}
	if _, _, err := run("sea-ship", "--dir="+dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a directory that is not empty: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	dir := "--dir=" + filepath.Join(t.TempDir(), "none")
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, `name the server, as in "bowsprit extension init ship`},
		{[]string{"Ship"}, `NAME "Ship": `},
		{[]string{"ship", "--api=v1"}, `--api "v1" is not a group and a version such as sea.example.com/v1`},
		{[]string{"ship", "--kind=ship"}, `--kind "ship" is not a name such as Ship`},
		{[]string{"ship", "--module=/a b"}, `--module "/a b" is not the path of a Go module`},
		{[]string{"ship", "--replace=."}, "is not the source of Bowsprit"},
	} {
		if _, _, err := run(append(test.args, dir)...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %s", test.args, err, test.want)
		}
	}
}
