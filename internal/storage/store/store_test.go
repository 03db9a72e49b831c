//go:build moving

package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // for a busy machine
	t.Cleanup(cancel)
	return ctx
}

// open returns an embedded store that must stay silent.
func open(t testing.TB, e Embedded) *Store {
	t.Helper()
	if e.Dir == "" {
		e.Dir = filepath.Join(t.TempDir(), "etcd")
	}
	e.NoSync = true
	var log logtest.Log
	s, err := Open(testContext(t),
		Config{Embedded: &e, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		for line := range strings.Lines(log.String()) {
			// Warnings about a slow machine are no fault. The test itself loses the lease.
			if !slices.ContainsFunc([]string{"request stats", "too long", "lease not found"},
				func(text string) bool { return strings.Contains(line, text) }) {
				t.Errorf("etcd logged: %s", line)
			}
		}
	})
	return s
}

func TestWrites(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *Store) {
		ctx := testContext(t)
		key := "example.com/things/default/a"
		r1, err := s.Create(ctx, key, []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(ctx, key, []byte("2")); !errors.Is(err, ErrExists) {
			t.Errorf("second create: %v", err)
		}
		if _, err := s.Update(ctx, key, []byte("2"), r1+1); !errors.Is(err, ErrConflict) {
			t.Errorf("update of another revision: %v", err)
		}
		if _, err := s.Update(ctx, key+"x", []byte("2"), r1); !errors.Is(err, ErrNotFound) {
			t.Errorf("update of a missing key: %v", err)
		}
		if _, err := s.Update(ctx, key, []byte("2"), 0); err == nil || errors.Is(err, ErrConflict) {
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
		if _, err := s.Delete(ctx, key, r1); !errors.Is(err, ErrConflict) {
			t.Errorf("delete of another revision: %v", err)
		}
		if r3, err := s.Delete(ctx, key, r2); err != nil || r3 <= r2 {
			t.Errorf("delete: %d, %v", r3, err)
		}
		if _, err := s.Delete(ctx, key, r2); !errors.Is(err, ErrNotFound) {
			t.Errorf("second delete: %v", err)
		}
		if _, err := s.Get(ctx, key); !errors.Is(err, ErrNotFound) {
			t.Errorf("get of a deleted key: %v", err)
		}
		if err := s.Check(ctx); err != nil {
			t.Errorf("check: %v", err)
		}
		if _, err := s.Create(ctx, "big", make([]byte, 9<<20)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("create of 9 MB: %v", err)
		}
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := s.Create(canceled, "never", nil); !errors.Is(err, context.Canceled) ||
			errors.Is(err, ErrUncertain) {
			t.Errorf("create with a context that is over: %v", err)
		}
	})
}

// forEachMode runs f with an embedded store, and with an external one on top of another embedded one.
func forEachMode(t *testing.T, f func(*testing.T, *Store)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		f(t, open(t, Embedded{}))
	})
	t.Run("external", func(t *testing.T) {
		t.Parallel()
		f(t, connect(t, open(t, Embedded{ListenClientURL: "http://127.0.0.1:0"})))
	})
}

// connect opens an external store on s.
func connect(t testing.TB, s *Store) *Store {
	t.Helper()
	ext, err := Open(testContext(t),
		Config{External: &External{Endpoints: []string{s.ClientURL()}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ext.Close() })
	return ext
}

func TestRange(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *Store) {
		ctx := testContext(t)
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
		o := RangeOptions{Prefix: "a.b/cs/", Limit: 10}
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
		if _, err := s.Range(ctx, RangeOptions{Revision: rev + 1000}); !errors.Is(err, ErrFuture) {
			t.Errorf("range in the future: %v", err)
		}
		if err := s.Compact(ctx, rev+1); err != nil {
			t.Fatal(err)
		}
		if err := s.Compact(ctx, rev); err != nil {
			t.Errorf("compacting less than before: %v", err)
		}
		if _, err := s.Range(ctx, RangeOptions{Revision: rev}); !errors.Is(err, ErrCompacted) {
			t.Errorf("range before the compaction: %v", err)
		}
		if r, err := s.Range(ctx, RangeOptions{}); err != nil || len(r.Records) != 28 || r.More {
			t.Errorf("range of everything: %d records, %v", len(r.Records), err)
		}
	})
}

func BenchmarkCreate(b *testing.B) {
	for _, fsync := range []bool{false, true} {
		for _, writers := range []int{1, 64} {
			b.Run(fmt.Sprintf("fsync=%v/writers=%d", fsync, writers), func(b *testing.B) {
				s, err := Open(b.Context(),
					Config{
						Embedded: &Embedded{Dir: filepath.Join(b.TempDir(), "etcd"), NoSync: !fsync},
						Log:      slog.New(slog.DiscardHandler),
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

func BenchmarkOpen(b *testing.B) {
	for _, nosync := range []bool{true, false} {
		b.Run(fmt.Sprintf("fsync=%v", !nosync), func(b *testing.B) {
			var closing time.Duration
			for range b.N {
				s, err := Open(b.Context(),
					Config{
						Embedded: &Embedded{Dir: filepath.Join(b.TempDir(), "etcd"), NoSync: nosync},
						Log:      slog.New(slog.DiscardHandler),
					})
				if err != nil {
					b.Fatal(err)
				}
				t := time.Now()
				s.Close()
				closing += time.Since(t)
			}
			b.ReportMetric(float64(closing.Milliseconds())/float64(b.N), "close-ms/op")
		})
	}
}
