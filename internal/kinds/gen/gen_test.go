package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFresh compares the committed schemas with the output of the command.
func TestFresh(t *testing.T) {
	t.Parallel()
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	const dir = "../schemas"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		have = append(have, e.Name())
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if w, ok := want[e.Name()]; !ok {
			t.Errorf("%s: no kind needs it", e.Name())
		} else if !bytes.Equal(w, data) {
			t.Errorf("%s is stale: run go generate ./internal/kinds/schemas", e.Name())
		}
	}
	for name := range want {
		if !slices.Contains(have, name) {
			t.Errorf("%s is missing: run go generate ./internal/kinds/schemas", name)
		}
	}
}

func TestDescription(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"One line.\n", "One line."},
		{"Joined\nlines.\n\nAnd a paragraph.\n+optional\n", "Joined lines.\n\nAnd a paragraph."},
		{"Example:\n\n\t{ \\\"a\\\": 1 }\n\nafter\n", "Example:\n\n\t{ \\\"a\\\": 1 }\n\nafter"},
		{"Example:\n  indented\nafter\n", "Example:\n  indented\nafter"},
		{"Kept.\nTODO: not kept\n---\nnot kept either\n", "Kept."},
		{"+genclient\n", ""},
	} {
		if got := (comment{c.text}).description(); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	c := comment{"Prose.\n+optional\n+listType=map\n+listMapKey=ip\n+listMapKey=port\n+default=\"x y\"\n"}
	if !c.has("optional") || c.has("required") {
		t.Error("has")
	}
	if got := c.markers("listMapKey"); !slices.Equal(got, []string{"ip", "port"}) {
		t.Errorf("listMapKey %q", got)
	}
	if got := c.marker("default"); got != `"x y"` {
		t.Errorf("default %s", got)
	}
}

func TestEnum(t *testing.T) {
	t.Parallel()
	values := []constant{{value: `"A"`, comment: "is the first."}, {value: `"B"`}}
	want := "Which one.\n\nPossible enum values:\n - `\"A\"` is the first.\n - `\"B\"`"
	if got := explained(comment{"Which one.\n+optional\n"}, values).description(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, err := literals(values); err != nil || !slices.Equal(got, []string{"A", "B"}) {
		t.Errorf("%q, %v", got, err)
	}
}
