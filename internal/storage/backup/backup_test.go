package backup

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
)

var quiet = slog.New(slog.DiscardHandler)

// TestDirToDir restores a snapshot of a data directory, in use or not, in another one.
func TestDirToDir(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, to := t.TempDir(), t.TempDir()
	s, err := store.Open(ctx, store.Config{Etcd: embedded.Config{Dir: EtcdDir(from)}, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	rev, err := s.Create(ctx, "namespaces/default", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup.db")
	if _, err := Save(ctx, FromDir(from, quiet), file); !errors.Is(err, store.ErrInUse) {
		t.Errorf("of a running server: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("an older one"), 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := Save(ctx, FromDir(from, quiet), file)
	if err != nil || info.Revision != rev {
		t.Fatalf("%+v, %v; want revision %d", info, err, rev)
	}
	if mode, err := os.Stat(file); err != nil || mode.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", mode.Mode(), err)
	}
	if _, err := Restore(file, to, 0); err != nil {
		t.Fatal(err)
	}
	s, err = store.Open(ctx, store.Config{Etcd: embedded.Config{Dir: EtcdDir(to)}, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r, err := s.Get(ctx, "namespaces/default"); err != nil || r.Revision != rev {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSaveFails checks that a failing source leaves no file, and keeps an existing one.
func TestSaveFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "backup.db")
	if err := os.WriteFile(file, []byte("an older one"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		from Source
		want error
	}{
		"source fails": {func(context.Context, io.Writer) error { return broken }, broken},
		"half a snapshot": {
			func(_ context.Context, w io.Writer) error { _, err := w.Write(make([]byte, 8192)); return err },
			embedded.ErrNotSnapshot,
		},
		"no data directory": {FromDir(dir, quiet), os.ErrNotExist},
	} {
		if _, err := Save(t.Context(), c.from, file); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "an older one" {
		t.Errorf("%q, %v", b, err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("left behind: %v, %v", all, err)
	}
}
