package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/format"
)

// TestSnapshotFormat checks that a snapshot reports the highest format of all prefixes at its revision, and that a
// newer format is not restored.
func TestSnapshotFormat(t *testing.T) {
	t.Parallel()
	s, l := open(t, Config{})
	take := func() (string, SnapshotInfo) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "s.db")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Snapshot(context.Background(), f); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		info, err := CheckSnapshot(file)
		if err != nil {
			t.Fatal(err)
		}
		return file, info
	}
	if _, info := take(); info.Format != (format.Mark{}) {
		t.Errorf("without a mark: %+v", info.Format)
	}
	if err := s.MarkFormat(testContext(t), "v1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(testContext(t), "a", []byte(format.KeyPrefix+"/registry/ is only mentioned here")); err != nil {
		t.Fatal(err)
	}
	if _, info := take(); info.Format != (format.Mark{Format: 1, Version: "v1"}) {
		t.Errorf("%+v", info.Format)
	}
	if _, err := l.client.Put(testContext(t), format.KeyPrefix+"/other/", `{"format":99,"version":"v99"}`); err != nil {
		t.Fatal(err)
	}
	file, info := take()
	if info.Format.Format != 99 {
		t.Errorf("%+v", info.Format)
	}
	dir := filepath.Join(t.TempDir(), "deep", "etcd")
	_, err := RestoreSnapshot(file, RestoreOptions{Dir: dir})
	if !errors.Is(err, format.ErrNewer) || !strings.Contains(err.Error(), "start that version or a later one") {
		t.Errorf("restored: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is there: %v", err)
	}
	if _, err := l.client.Delete(testContext(t), format.KeyPrefix+"/other/"); err != nil {
		t.Fatal(err)
	}
	if _, info := take(); info.Format.Format != 1 {
		t.Errorf("after the mark has gone: %+v", info.Format)
	}
}
