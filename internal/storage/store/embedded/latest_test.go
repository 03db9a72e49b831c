package embedded

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFind searches the latest values in the database of a stopped etcd: not those of deleted keys, of earlier
// revisions, or below other prefixes.
func TestFind(t *testing.T) {
	t.Parallel()
	old := func(value []byte) bool { return bytes.Equal(value, []byte("old")) }
	dir := filepath.Join(t.TempDir(), "etcd")
	if _, err := Find(dir, []string{"/registry/"}, old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a database: %v", err)
	}
	s, l := open(t, Config{Dir: dir})
	ctx, long := testContext(t), strings.Repeat("long", 100)
	for _, step := range [][2]string{
		{"groups/a", "old"}, {"groups/b", "old"}, {"groups/c", "old"}, {"groups/d", "new"}, {"groupings/e", "old"},
		{"groups/b", "new"}, {"groups/d", "old"}, {"groups/f/" + long, "old"},
	} {
		if _, err := l.client.Put(ctx, "/registry/"+step[0], step[1]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.client.Delete(ctx, "/registry/groups/c"); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(dir, []string{"/registry/groups/"}, old); !errors.Is(err, ErrInUse) {
		t.Errorf("beside a running etcd: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	keys, err := Find(dir, []string{"/registry/groups/"}, old)
	want := []string{"/registry/groups/a", "/registry/groups/d", "/registry/groups/f/" + long}
	if err != nil || !slices.Equal(keys, want) {
		t.Errorf("%q, %v; want %q", keys, err, want)
	}
}
