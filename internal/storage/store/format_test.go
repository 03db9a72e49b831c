//go:build moving

package store

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/bowsprit/bowsprit/internal/storage/format"
)

// newer is the mark of a later version.
const newer = `{"format":99,"version":"v99"}`

// putMark writes the mark as another server would.
func putMark(t *testing.T, s *Store, value string) {
	t.Helper()
	if _, err := s.client.Put(testContext(t), s.formatKey(), value); err != nil {
		t.Fatal(err)
	}
}

func noted(t *testing.T, s *Store) string {
	t.Helper()
	resp, err := s.client.Get(testContext(t), s.formatKey())
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Kvs) == 0 {
		return ""
	}
	return string(resp.Kvs[0].Value)
}

func TestMarkFormat(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *Store) {
		for _, test := range []struct{ there, want, wantError string }{
			{"", `{"format":1,"version":"v2"}`, ""},
			{`{"format":1,"version":"v1"}`, `{"format":1,"version":"v1"}`, ""},
			{newer, newer, "the data in etcd below /registry/ was written by bowsprit v99 in format 99, and this program " +
				"knows formats up to 1: start that version or a later one"},
			{"{}", "{}", "says nothing of a format"},
		} {
			if test.there != "" {
				putMark(t, s, test.there)
			}
			before, err := s.Revision(testContext(t))
			if err != nil {
				t.Fatal(err)
			}
			err = s.MarkFormat(testContext(t), "v2")
			if (err != nil) != (test.wantError != "") || err != nil && !strings.Contains(err.Error(), test.wantError) ||
				errors.Is(err, format.ErrNewer) != (test.there == newer) {
				t.Errorf("%q: %v", test.there, err)
			}
			if got := noted(t, s); got != test.want {
				t.Errorf("%q: %q is there now", test.there, got)
			}
			if after, err := s.Revision(testContext(t)); err != nil || test.there != "" && after != before {
				t.Errorf("%q: something was written, %v", test.there, err)
			}
		}
		if r, err := s.Range(testContext(t), RangeOptions{}); err != nil || len(r.Records) > 0 {
			t.Errorf("the mark is among the objects: %v %v", r, err)
		}
	})
}

// TestNewerBesideOlder checks that an older server writes nothing to a shared etcd, by whichever write, and ends, once
// a server with a newer format has started.
func TestNewerBesideOlder(t *testing.T) {
	t.Parallel()
	etcd := open(t, Embedded{ListenClientURL: "http://127.0.0.1:0"})
	ctx := testContext(t)
	for name, write := range map[string]func(s *Store, rev int64) error{
		"create": func(s *Store, _ int64) error { _, err := s.Create(ctx, "b", nil); return err },
		"create of what is there": func(s *Store, _ int64) error {
			_, err := s.Create(ctx, "a", nil)
			return err
		},
		"update":            func(s *Store, rev int64) error { _, err := s.Update(ctx, "a", nil, rev); return err },
		"update of another": func(s *Store, _ int64) error { _, err := s.Update(ctx, "a", nil, 1); return err },
		"delete":            func(s *Store, rev int64) error { _, err := s.Delete(ctx, "a", rev); return err },
		"unless fenced": func(s *Store, rev int64) error {
			o := Options{
				UnlessFenced: []string{"f"}, Sequence: Sequence{Name: "s", Seen: rev}, Also: []Change{{Key: "c"}},
			}
			_, err := s.With(o).Update(ctx, "a", nil, rev)
			return err
		},
		"nothing": func(s *Store, _ int64) error { return s.lookAtFormat(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			s := connectAt(t, etcd, strings.ReplaceAll(name, " ", "-"))
			if err := s.MarkFormat(ctx, "v1"); err != nil {
				t.Fatal(err)
			}
			rev, err := s.Create(ctx, "a", []byte("v"))
			if err != nil {
				t.Fatal(err)
			}
			putMark(t, s, newer)
			if err := write(s, rev); !errors.Is(err, format.ErrNewer) || errors.Is(err, ErrUncertain) {
				t.Errorf("the write: %v", err)
			}
			<-s.Failed()
			if err := s.Check(ctx); !errors.Is(err, format.ErrNewer) {
				t.Errorf("Check: %v", err)
			}
			if r, err := s.client.Get(ctx, s.prefix, clientv3.WithPrefix()); err != nil || len(r.Kvs) != 1 ||
				string(r.Kvs[0].Value) != "v" {
				t.Errorf("there is %v, %v", r, err)
			}
			if err := s.Close(); err == nil || !strings.Contains(err.Error(), "a server of a later version was started") {
				t.Errorf("the reason of the end: %v", err)
			}
		})
	}
}

// connectAt opens an external store on s with a prefix of its own.
func connectAt(t *testing.T, s *Store, prefix string) *Store {
	t.Helper()
	external := &External{Endpoints: []string{s.ClientURL()}}
	ext, err := Open(testContext(t), Config{Prefix: prefix, External: external, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ext.Close() })
	return ext
}

// TestMarkMadeAnew checks that a mark recreated by another server of this format, or lost with an older backup, stops
// no write and does not affect the conditions of writes.
func TestMarkMadeAnew(t *testing.T) {
	t.Parallel()
	s := connectAt(t, open(t, Embedded{ListenClientURL: "http://127.0.0.1:0"}), "registry")
	ctx := testContext(t)
	if err := s.MarkFormat(ctx, "v1"); err != nil {
		t.Fatal(err)
	}
	putMark(t, s, `{"format":1,"version":"v3"}`)
	rev, err := s.Create(ctx, "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Delete(ctx, s.formatKey()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(ctx, "a", []byte("2"), rev); err != nil {
		t.Error(err)
	}
	if got := noted(t, s); got != `{"format":1,"version":"v1"}` {
		t.Errorf("the mark is %q", got)
	}
	_, exists := s.Create(ctx, "a", nil)
	_, conflict := s.Update(ctx, "a", nil, rev)
	_, missing := s.Delete(ctx, "b", rev)
	_, taken := s.With(Options{Also: []Change{{Key: "a"}}}).Create(ctx, "c", nil)
	if !errors.Is(exists, ErrExists) || !errors.Is(conflict, ErrConflict) || !errors.Is(missing, ErrNotFound) ||
		!errors.Is(taken, ErrTaken) {
		t.Error(exists, conflict, missing, taken)
	}
}

// TestSnapshotFormat checks that a snapshot reports the highest format of all prefixes at its revision, and that a
// newer format is not restored.
func TestSnapshotFormat(t *testing.T) {
	t.Parallel()
	s := open(t, Embedded{})
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
	if _, err := s.client.Put(testContext(t), format.KeyPrefix+"/other/", newer); err != nil {
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
	if _, err := s.client.Delete(testContext(t), format.KeyPrefix+"/other/"); err != nil {
		t.Fatal(err)
	}
	if _, info := take(); info.Format.Format != 1 {
		t.Errorf("after the mark has gone: %+v", info.Format)
	}
}
