package store_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/format"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/storage/store/external"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
)

// newer is the mark of a later version.
const newer = `{"format":99,"version":"v99"}`

// mark is the key of the mark of the store's default prefix.
var mark = format.Key("registry")

// putMark writes the mark as another server would.
func putMark(t *testing.T, s *store.Store, key, value string) {
	t.Helper()
	if err := s.Put(etcdtest.Context(t), key, value); err != nil {
		t.Fatal(err)
	}
}

func storedFormat(t *testing.T, s *store.Store) string {
	t.Helper()
	kv, err := s.Whole(etcdtest.Context(t), mark)
	if err != nil {
		t.Fatal(err)
	}
	return string(kv.GetValue())
}

func TestMarkFormat(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *store.Store) {
		for _, test := range []struct{ there, want, wantError string }{
			{"", `{"format":1,"version":"v2"}`, ""},
			{`{"format":1,"version":"v1"}`, `{"format":1,"version":"v1"}`, ""},
			{newer, newer, "the data in etcd below /registry/ was written by bowsprit v99 in format 99, and this version " +
				"reads formats up to 1: start that version or a later one"},
			{"{}", "{}", "contains no format"},
		} {
			if test.there != "" {
				putMark(t, s, mark, test.there)
			}
			before, err := s.Revision(etcdtest.Context(t))
			if err != nil {
				t.Fatal(err)
			}
			err = s.MarkFormat(etcdtest.Context(t), "v2")
			if (err != nil) != (test.wantError != "") || err != nil && !strings.Contains(err.Error(), test.wantError) ||
				errors.Is(err, format.ErrNewer) != (test.there == newer) {
				t.Errorf("%q: %v", test.there, err)
			}
			if got := storedFormat(t, s); got != test.want {
				t.Errorf("%q: %q is there now", test.there, got)
			}
			if after, err := s.Revision(etcdtest.Context(t)); err != nil || test.there != "" && after != before {
				t.Errorf("%q: something was written, %v", test.there, err)
			}
		}
		if r, err := s.Range(etcdtest.Context(t), store.RangeOptions{}); err != nil || len(r.Records) > 0 {
			t.Errorf("the mark is among the objects: %v %v", r, err)
		}
	})
}

// TestNewerBesideOlder checks that an older server writes nothing to a shared etcd, by whichever write, and ends, once
// a server with a newer format has started.
func TestNewerBesideOlder(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Open(t, embedded.Config{ListenClientURL: "http://127.0.0.1:0"})
	ctx := etcdtest.Context(t)
	for name, write := range map[string]func(s *store.Store, rev int64) error{
		"create": func(s *store.Store, _ int64) error { _, err := s.Create(ctx, "b", nil); return err },
		"create of what is there": func(s *store.Store, _ int64) error {
			_, err := s.Create(ctx, "a", nil)
			return err
		},
		"update": func(s *store.Store, rev int64) error {
			_, err := s.Update(ctx, "a", nil, rev)
			return err
		},
		"update of another": func(s *store.Store, _ int64) error { _, err := s.Update(ctx, "a", nil, 1); return err },
		"delete":            func(s *store.Store, rev int64) error { _, err := s.Delete(ctx, "a", rev); return err },
		"unless fenced": func(s *store.Store, rev int64) error {
			o := store.Options{
				UnlessFenced: []string{"f"}, Sequence: store.Sequence{Name: "s", Seen: rev},
				Also: []store.Change{{Key: "c"}},
			}
			_, err := s.With(o).Update(ctx, "a", nil, rev)
			return err
		},
		"nothing": func(s *store.Store, _ int64) error { return s.LookAtFormat(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			prefix := strings.ReplaceAll(name, " ", "-")
			s := connectAt(t, etcd, prefix)
			if err := s.MarkFormat(ctx, "v1"); err != nil {
				t.Fatal(err)
			}
			rev, err := s.Create(ctx, "a", []byte("v"))
			if err != nil {
				t.Fatal(err)
			}
			putMark(t, s, format.Key(prefix), newer)
			if err := write(s, rev); !errors.Is(err, format.ErrNewer) || errors.Is(err, store.ErrUncertain) {
				t.Errorf("the write: %v", err)
			}
			<-s.Failed()
			if err := s.Check(ctx); !errors.Is(err, format.ErrNewer) {
				t.Errorf("Check: %v", err)
			}
			for key, want := range map[string]string{"a": "v", "b": "", "c": ""} {
				if kv, err := s.Whole(ctx, s.Path(key)); err != nil || string(kv.GetValue()) != want {
					t.Errorf("%s is %v, %v", key, kv, err)
				}
			}
			if err := s.Close(); err == nil || !strings.Contains(err.Error(), "a server of a later version was started") {
				t.Errorf("the reason of the end: %v", err)
			}
		})
	}
}

// connectAt opens an external store on s with a prefix of its own.
func connectAt(t *testing.T, s *store.Store, prefix string) *store.Store {
	t.Helper()
	etcd := external.Config{Endpoints: []string{s.ClientURL()}}
	ext, err := store.Open(etcdtest.Context(t),
		store.Config{Prefix: prefix, Etcd: etcd, Log: slog.New(slog.DiscardHandler)})
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
	s := connectAt(t, etcdtest.Open(t, embedded.Config{ListenClientURL: "http://127.0.0.1:0"}), "registry")
	ctx := etcdtest.Context(t)
	if err := s.MarkFormat(ctx, "v1"); err != nil {
		t.Fatal(err)
	}
	putMark(t, s, mark, `{"format":1,"version":"v3"}`)
	rev, err := s.Create(ctx, "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, mark); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(ctx, "a", []byte("2"), rev); err != nil {
		t.Error(err)
	}
	if got := storedFormat(t, s); got != `{"format":1,"version":"v1"}` {
		t.Errorf("the mark is %q", got)
	}
	_, exists := s.Create(ctx, "a", nil)
	_, conflict := s.Update(ctx, "a", nil, rev)
	_, missing := s.Delete(ctx, "b", rev)
	_, taken := s.With(store.Options{Also: []store.Change{{Key: "a"}}}).Create(ctx, "c", nil)
	if !errors.Is(exists, store.ErrExists) || !errors.Is(conflict, store.ErrConflict) ||
		!errors.Is(missing, store.ErrNotFound) || !errors.Is(taken, store.ErrTaken) {
		t.Error(exists, conflict, missing, taken)
	}
}
