package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files returns the content of the files in dir.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.Open(file) // an open reader keeps the old content
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	if err := WriteFile(file, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); len(got) != 1 || got["key"] != "new" {
		t.Errorf("the folder has %q", got)
	}
	old := make([]byte, 3)
	if _, err := before.Read(old); err != nil || string(old) != "old" {
		t.Errorf("a reader got %q, %v", old, err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("mode %o, of a file that may be a key", mode)
	}
}

// TestWriteFileFails checks that a failed write leaves the old content, and no other files.
func TestWriteFileFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(taken, []byte("new")); err == nil || !strings.HasPrefix(err.Error(), "write "+taken+": ") {
		t.Errorf("a folder was replaced, or the error names another file: %v", err)
	}
	missing := filepath.Join(dir, "missing", "key")
	if err := WriteFile(missing, nil); !errors.Is(err, fs.ErrNotExist) ||
		!strings.HasPrefix(err.Error(), "write "+missing+": ") {
		t.Errorf("in a folder that does not exist: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	if err := WriteFile(filepath.Join(dir, "missing", "key"), nil); err == nil {
		t.Error("a file was written into a folder that is not there")
	}
}

func TestRename(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, file := range []string{from, to} {
		if err := os.WriteFile(file, []byte(filepath.Base(file)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Rename(from, to); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); len(got) != 1 || got["to"] != "from" {
		t.Errorf("the folder has %q", got)
	}
	if err := Rename(from, to); err == nil {
		t.Error("what is not there was renamed")
	}
}
