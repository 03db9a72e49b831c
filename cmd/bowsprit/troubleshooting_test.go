package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// symptom matches the headings of docs/troubleshooting.md that are messages.
var symptom = regexp.MustCompile("(?m)^### `(.*)`$")

// foreignSymptoms are messages of clients and of etcd, which our sources do not have.
var foreignSymptoms = []string{
	`no matches for kind "…" in version "…"`, "etcdserver: mvcc: database space exceeded", `namespaces "…" not found`,
	"certificate signed by unknown authority", `is forbidden: User "…" cannot …`,
}

// literal joins the parts of a text that the sources divide into lines.
var literal = regexp.MustCompile(`" \+\s*"`)

// TestSymptoms checks that each message of docs/troubleshooting.md is a message of the program: a reader searches the
// page for the text on the screen.
func TestSymptoms(t *testing.T) {
	t.Parallel()
	foreign := strings.Join(foreignSymptoms, "\n")
	var sources strings.Builder
	for _, dir := range []string{"cmd", "internal"} {
		err := fs.WalkDir(os.DirFS(filepath.Join("..", "..")), dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			sources.WriteString(literal.ReplaceAllString(read(t, filepath.Join("..", "..", path)), ""))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	text := strings.ReplaceAll(sources.String(), `\"`, `"`)
	symptoms := symptom.FindAllStringSubmatch(read(t, filepath.Join("..", "..", "docs", "troubleshooting.md")), -1)
	for _, s := range symptoms {
		for part := range strings.SplitSeq(s[1], "…") {
			if !strings.Contains(text, strings.TrimSpace(part)) && !strings.Contains(foreign, s[1]) {
				t.Errorf("no message has %q, of %q", part, s[1])
			}
		}
	}
	if len(symptoms) < 15 {
		t.Errorf("only %d messages", len(symptoms))
	}
}
