package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRead reads streams, and checks the lines of their objects and problems.
func TestRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"one":       {"apiVersion: v1\nkind: A\nmetadata:\n  name: a\n", "A@1 name@4"},
		"separated": {"---\nkind: A\n--- # next\n\nkind: B\nmetadata: {name: b}\n---\n# empty\n", "A@2 name@2; B@5 name@6"},
		"broken": {"kind: A\n---\nkind: B\n  a: [\n---\nkind: C\n", "A@1 name@1; C@6 name@6; " +
			"! f:4: this is not YAML: mapping values are not allowed in this context"},
		"ended":  {"kind: A\n...\nkind: B\n", "A@1 name@1; B@3 name@3"},
		"scalar": {"kind: A\n---\nhello\n", "A@1 name@1; ! f:3: this is not an object: an object begins with apiVersion and kind"},
		"list": {"kind: List\nitems:\n- kind: A\n  metadata:\n    name: a\n- 7\n- kind: B\n",
			"A@3 name@5; B@7 name@7; ! f:6: items[1]: this is not an object"},
		"JSON":        {"{\"kind\":\"A\"}\n{\n\t\"kind\":\"B\",\n\"metadata\":{\"name\":\"b\"}}\n", "A@1 name@1; B@2 name@4"},
		"flow":        {"{kind: A,\n metadata: {name: a}}", "A@1 name@2"},
		"text in one": {"kind: A\nmetadata: {name: '---'}\n", "A@1 name@2"},
		"nothing":     {"", ""},
	} {
		var s Set
		s.Read("f", strings.NewReader(tc.text))
		var got []string
		for i := range s.Documents {
			d := &s.Documents[i]
			got = append(got, fmt.Sprintf("%s@%d name@%d", d.Object["kind"], d.Line(""), d.Line("metadata.name")))
		}
		for _, p := range s.Problems {
			got = append(got, "! "+p.Error())
		}
		if all := strings.Join(got, "; "); all != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", name, all, tc.want)
		}
	}
}

// TestCheck checks that objects without a name or kind are reported with their path.
func TestCheck(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"apiVersion: v1\nkind: A\nmetadata: {name: a}": "<nil>",
		"kind: A":                   "f:1: apiVersion: is missing",
		"apiVersion: v1\nkind: [A]": "f:2: kind: is not a text",
		"apiVersion: v1\nkind: A\nmetadata: {name: ''}":     "f:3: metadata.name: is empty",
		"kind: List\nitems:\n- apiVersion: v1\n  kind: A\n": "f:3: items[0].metadata.name: is missing",
	} {
		var s Set
		s.Read("f", strings.NewReader(text))
		if got := fmt.Sprint(s.Documents[0].CheckName()); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestLoad reads a directory: its problems do not hide other files.
func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "a: [", "b.yaml": "kind: B", "c.txt": "kind: C", ".git/d.yaml": "kind: D", "e/f.json": `{"kind":"F"}`,
		"g.yml": "kind: G\n---\na: b: c\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := Load([]string{dir, "-"}, strings.NewReader("kind: S"))
	if err != nil || len(s.Documents) != 4 || len(s.Problems) != 2 ||
		!strings.Contains(s.Err().Error(), filepath.Join(dir, "g.yml")+":3: ") {
		t.Errorf("%v %v", err, s)
	}
	if s, err = Load([]string{filepath.Join(dir, "c.txt")}, nil); err != nil || len(s.Documents) != 1 {
		t.Errorf("a file that is named: %v %v", err, s)
	}
	if _, err = Load([]string{"nosuchdir"}, nil); !errors.Is(err, fs.ErrNotExist) ||
		!strings.HasPrefix(err.Error(), "nosuchdir does not exist: name a file") {
		t.Errorf("a missing directory: %v", err)
	}
}

// FuzzRead checks that no text ends the process, and that lines are lines of the text.
func FuzzRead(f *testing.F) {
	f.Add("kind: List\nitems: [{kind: A}]\n---\n{}\n...\n")
	f.Add("{\"a\":1}\n{\"kind\":\"B\"}")
	f.Fuzz(func(t *testing.T, text string) {
		var s Set
		s.Read("f", strings.NewReader(text))
		most := strings.Count(text, "\n") + 2
		for i := range s.Documents {
			d := &s.Documents[i]
			for _, path := range []string{"", "metadata.name", "spec.versions[0]"} {
				if line := d.Line(path); line < 1 || line > most {
					t.Errorf("%q is on line %d", path, line)
				}
			}
			_ = d.CheckName()
		}
	})
}
