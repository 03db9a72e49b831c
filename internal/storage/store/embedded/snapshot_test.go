package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/external"
)

// TestSnapshot checks that a snapshot taken during writes has one revision: every write up to it and none after.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]func(*testing.T) *store.Store{
		"directly": func(t *testing.T) *store.Store { s, _ := open(t, Config{}); return s },
		"through its socket": func(t *testing.T) *store.Store {
			s, _ := open(t, Config{ListenClientURL: "http://127.0.0.1:0"})
			etcd := external.Config{Endpoints: []string{s.ClientURL()}}
			ext, err := store.Open(testContext(t), store.Config{Etcd: etcd, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { ext.Close() })
			return ext
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx := through(t), testContext(t)
			for i := range 50 {
				if _, err := s.Create(ctx, fmt.Sprintf("before/%02d", i), []byte("v")); err != nil {
					t.Fatal(err)
				}
			}
			writing, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() {
				var err error
				for i := 0; writing.Err() == nil && err == nil; i++ {
					_, err = s.Create(ctx, fmt.Sprintf("during/%06d", i), []byte("v"))
				}
				ended <- err
			}()
			dir := t.TempDir()
			file := filepath.Join(dir, "snapshot.db")
			f, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Snapshot(ctx, f); err != nil {
				t.Fatal(err)
			}
			f.Close()
			stop()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			info, err := CheckSnapshot(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, bump := range []uint64{0, 1_000_000_000} {
				target := filepath.Join(dir, fmt.Sprint("data-", bump))
				back, err := RestoreSnapshot(file, RestoreOptions{Dir: target, BumpRevision: bump})
				if err != nil {
					t.Fatal(err)
				}
				if back.Revision != info.Revision+int64(bump) {
					t.Errorf("restored at %d, snapshot at %d", back.Revision, info.Revision)
				}
				r, err := store.Open(ctx,
					store.Config{Etcd: Config{Dir: target, NoSync: true}, Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				was, err := s.Range(ctx, store.RangeOptions{Revision: info.Revision})
				if err != nil {
					t.Fatal(err)
				}
				is, err := r.Range(ctx, store.RangeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if len(is.Records) < 50 || len(is.Records) != len(was.Records) {
					t.Fatalf("%d records, want %d", len(is.Records), len(was.Records))
				}
				for i, rec := range is.Records {
					if old := was.Records[i]; rec.Key != old.Key || !bytes.Equal(rec.Value, old.Value) ||
						rec.Revision != old.Revision {
						t.Fatalf("%+v, want %+v", rec, old)
					}
				}
				if rev, err := r.Create(ctx, "after", nil); err != nil || rev <= back.Revision {
					t.Errorf("first write: %d, %v", rev, err)
				}
				if bump > 0 {
					if b := <-r.Watch(ctx, info.Revision+1); !errors.Is(b.Err, store.ErrCompacted) {
						t.Errorf("a watch from before the restore got %+v", b)
					}
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				if _, err := RestoreSnapshot(file, RestoreOptions{Dir: target}); err == nil ||
					!strings.Contains(err.Error(), "not empty") {
					t.Errorf("restore into what is there: %v", err)
				}
			}
			left, err := filepath.Glob(filepath.Join(dir, "*restoring*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestDamagedSnapshot(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s, _ := open(t, Config{})
	if _, err := s.Create(ctx, "k", make([]byte, 100<<10)); err != nil {
		t.Fatal(err)
	}
	var whole bytes.Buffer
	if _, err := s.Snapshot(ctx, &whole); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"empty":          {},
		"text":           []byte("no snapshot"),
		"cut off":        whole.Bytes()[:whole.Len()/2],
		"cut by a page":  whole.Bytes()[:whole.Len()-4096],
		"without a sum":  whole.Bytes()[:whole.Len()-32],
		"one bit":        flipped(whole.Bytes(), whole.Len()/2),
		"one bit of sum": flipped(whole.Bytes(), whole.Len()-1),
	} {
		file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(dir, "target")
		if _, err := RestoreSnapshot(file, RestoreOptions{Dir: target}); !errors.Is(err, ErrNotSnapshot) ||
			!strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: left a data directory: %v", name, err)
		}
	}
}

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 1
	return b
}
