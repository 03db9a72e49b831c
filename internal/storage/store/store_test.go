package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/storage/store/external"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
)

func TestWrites(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *store.Store) {
		ctx := etcdtest.Context(t)
		key := "example.com/things/default/a"
		r1, err := s.Create(ctx, key, []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(ctx, key, []byte("2")); !errors.Is(err, store.ErrExists) {
			t.Errorf("second create: %v", err)
		}
		if _, err := s.Update(ctx, key, []byte("2"), r1+1); !errors.Is(err, store.ErrConflict) {
			t.Errorf("update of another revision: %v", err)
		}
		if _, err := s.Update(ctx, key+"x", []byte("2"), r1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("update of a missing key: %v", err)
		}
		if _, err := s.Update(ctx, key, []byte("2"), 0); err == nil || errors.Is(err, store.ErrConflict) {
			t.Errorf("update without a revision: %v", err)
		}
		r2, err := s.Update(ctx, key, []byte("2"), r1)
		if err != nil || r2 <= r1 {
			t.Errorf("update: %d, %v", r2, err)
		}
		rec, err := s.Get(ctx, key)
		if err != nil || rec.Key != key || string(rec.Value) != "2" || rec.Revision != r2 || rec.Created != r1 {
			t.Errorf("get: %+v, %v", rec, err)
		}
		if rev, err := s.Revision(ctx); err != nil || rev != r2 {
			t.Errorf("revision: %d, %v; want %d", rev, err, r2)
		}
		if _, err := s.Delete(ctx, key, r1); !errors.Is(err, store.ErrConflict) {
			t.Errorf("delete of another revision: %v", err)
		}
		if r3, err := s.Delete(ctx, key, r2); err != nil || r3 <= r2 {
			t.Errorf("delete: %d, %v", r3, err)
		}
		if _, err := s.Delete(ctx, key, r2); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("second delete: %v", err)
		}
		if _, err := s.Get(ctx, key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("get of a deleted key: %v", err)
		}
		if err := s.Check(ctx); err != nil {
			t.Errorf("check: %v", err)
		}
		if _, err := s.Create(ctx, "big", make([]byte, 9<<20)); !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("create of 9 MB: %v", err)
		}
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := s.Create(canceled, "never", nil); !errors.Is(err, context.Canceled) ||
			errors.Is(err, store.ErrUncertain) {
			t.Errorf("create with a context that is over: %v", err)
		}
	})
}

// forEachMode runs f with a store in memory, with an embedded one, and with an external one on top of another embedded
// one.
func forEachMode(t *testing.T, f func(*testing.T, *store.Store)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		s, err := store.Open(t.Context(), store.Config{Etcd: memory.New()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		f(t, s)
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		f(t, etcdtest.Open(t, embedded.Config{}))
	})
	t.Run("external", func(t *testing.T) {
		t.Parallel()
		f(t, connect(t, etcdtest.Open(t, embedded.Config{ListenClientURL: "http://127.0.0.1:0"})))
	})
}

// connect opens an external store on s.
func connect(t testing.TB, s *store.Store) *store.Store {
	t.Helper()
	ext, err := store.Open(etcdtest.Context(t),
		store.Config{Etcd: external.Config{Endpoints: []string{s.ClientURL()}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ext.Close() })
	return ext
}

func TestRange(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *store.Store) {
		ctx := etcdtest.Context(t)
		var rev int64
		for i := range 25 {
			var err error
			if rev, err = s.Create(ctx, fmt.Sprintf("a.b/cs/ns/%02d", i), []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Create(ctx, "a.b/csx/ns/0", []byte("{}")); err != nil {
			t.Fatal(err)
		}
		var got []string
		o := store.RangeOptions{Prefix: "a.b/cs/", Limit: 10}
		for pages := 1; ; pages++ {
			r, err := s.Range(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, rec := range r.Records {
				got = append(got, strings.TrimPrefix(rec.Key, "a.b/cs/ns/"))
			}
			if o.Revision == 0 && r.Revision != rev+1 || o.Revision != 0 && r.Revision != o.Revision {
				t.Errorf("page %d is at revision %d", pages, r.Revision)
			}
			if !r.More {
				break
			}
			o.After, o.Revision = r.Records[len(r.Records)-1].Key, r.Revision
			// A change between the pages is not seen.
			if _, err := s.Create(ctx, fmt.Sprintf("a.b/cs/ns/99-%d", pages), nil); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != 25 || got[0] != "00" || got[24] != "24" {
			t.Errorf("keys: %v", got)
		}
		if _, err := s.Range(ctx, store.RangeOptions{Revision: rev + 1000}); !errors.Is(err, store.ErrFuture) {
			t.Errorf("range in the future: %v", err)
		}
		if err := s.Compact(ctx, rev+1); err != nil {
			t.Fatal(err)
		}
		if err := s.Compact(ctx, rev); err != nil {
			t.Errorf("compacting less than before: %v", err)
		}
		if _, err := s.Range(ctx, store.RangeOptions{Revision: rev}); !errors.Is(err, store.ErrCompacted) {
			t.Errorf("range before the compaction: %v", err)
		}
		if r, err := s.Range(ctx, store.RangeOptions{}); err != nil || len(r.Records) != 28 || r.More {
			t.Errorf("range of everything: %d records, %v", len(r.Records), err)
		}
	})
}

func BenchmarkCreate(b *testing.B) {
	for _, fsync := range []bool{false, true} {
		for _, writers := range []int{1, 64} {
			b.Run(fmt.Sprintf("fsync=%v/writers=%d", fsync, writers), func(b *testing.B) {
				s, err := store.Open(b.Context(),
					store.Config{
						Etcd: embedded.Config{Dir: filepath.Join(b.TempDir(), "etcd"), NoSync: !fsync},
						Log:  slog.New(slog.DiscardHandler),
					})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				value := make([]byte, 2<<10)
				b.ReportAllocs()
				work := make(chan int, writers)
				var wg sync.WaitGroup
				for range writers {
					wg.Go(func() {
						for i := range work {
							if _, err := s.Create(b.Context(), fmt.Sprintf("k/%d", i), value); err != nil {
								b.Error(err)
							}
						}
					})
				}
				for i := range b.N {
					work <- i
				}
				close(work)
				wg.Wait()
			})
		}
	}
}

func TestOpenWithoutEtcd(t *testing.T) {
	t.Parallel()
	_, err := store.Open(t.Context(), store.Config{})
	if err == nil || !strings.Contains(err.Error(), "set Config.Etcd") {
		t.Errorf("%v", err)
	}
}
