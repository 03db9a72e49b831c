package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// TestRevisionDuringCommit checks that a request for the revision does not wait while etcd locks its key space to write
// the database to the disk.
func TestRevisionDuringCommit(t *testing.T) {
	t.Parallel()
	s, l := open(t, Config{})
	ctx := testContext(t)
	last, err := s.Create(ctx, "k/a", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	commit, ok := l.etcd.Server.Backend().ReadTx().(sync.Locker)
	if !ok {
		t.Fatal("etcd's reads have no lock any more: does the key space tell its revision without one?")
	}
	commit.Lock()
	defer commit.Unlock()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if got, err := s.Revision(ctx); got != last || err != nil {
			t.Errorf("%d %v, after a write at %d", got, err, last)
		}
	}()
	select {
	case <-answered:
	case <-ctx.Done():
		t.Error("no answer")
	}
}

// TestRevisionSeen checks that Revision is not below any visible revision: from a write refused because of another,
// unacknowledged one, from a read, from a watch.
func TestRevisionSeen(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		look func(t *testing.T, s *store.Store)
	}{
		{"refused write", func(t *testing.T, s *store.Store) {
			if _, err := s.Create(testContext(t), "k/a", []byte("{}")); !errors.Is(err, store.ErrExists) {
				t.Fatal(err)
			}
		}},
		{"read", func(t *testing.T, s *store.Store) {
			if _, err := s.Get(testContext(t), "k/a"); err != nil {
				t.Fatal(err)
			}
		}},
		{"watch", func(t *testing.T, s *store.Store) {
			if batch := <-s.Watch(testContext(t), 1); batch.Err != nil {
				t.Fatal(batch.Err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, l := open(t, Config{})
			ctx := testContext(t)
			last, err := s.Create(ctx, "k/a", []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			l.seen.Store(0) // as if it were not acknowledged
			test.look(t, s)
			if got, err := s.Revision(ctx); got < last || err != nil {
				t.Errorf("%d %v, after a write at %d", got, err, last)
			}
		})
	}
}

// TestRevisionOfOthers checks that writes of another program through ListenClientURL count at once.
func TestRevisionOfOthers(t *testing.T) {
	t.Parallel()
	s, l := open(t, Config{ListenClientURL: "http://127.0.0.1:0"})
	ctx := testContext(t)
	other, err := l.client.Put(ctx, "/elsewhere", "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Revision(ctx); got < other.Header.Revision || err != nil {
		t.Errorf("%d %v, after a write at %d", got, err, other.Header.Revision)
	}
}

// TestHistoryIsBounded checks that with a bound the older half of history is compacted when there is twice as much,
// once the watch has received it; but not if other programs may read it.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	const most = 20
	for _, test := range []struct {
		name         string
		with         Config
		watched, cut bool
	}{
		{"bounded", Config{History: most}, true, true},
		{"not watched", Config{History: most}, false, false},
		{"not bounded", Config{}, true, false},
		{"reached by others", Config{History: most, ListenClientURL: "http://127.0.0.1:0"}, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			s, _ := open(t, test.with)
			first, err := s.Create(ctx, "k", nil)
			if err != nil {
				t.Fatal(err)
			}
			var seen <-chan store.WatchBatch
			if test.watched {
				seen = s.Watch(ctx, 1)
			}
			last := first
			for n := 0; n < 20*most; n++ {
				if last, err = s.Update(ctx, "k", nil, last); err != nil {
					t.Fatal(err)
				}
				for rev := int64(0); test.watched && rev < last; {
					b := <-seen
					if rev = b.Revision; b.Err != nil {
						t.Fatal(b.Err)
					}
				}
				_, err := s.Range(ctx, store.RangeOptions{Revision: first})
				if err != nil && !errors.Is(err, store.ErrCompacted) {
					t.Fatal(err)
				}
				if err == nil {
					continue
				}
				if began := first - 1; !test.cut || last-began < 2*most { // when the store was opened
					t.Fatalf("%d is gone at %d", first, last)
				}
				if _, err := s.Range(ctx, store.RangeOptions{Revision: last - most + 1}); err != nil {
					t.Fatal(err)
				}
				if s.Horizon() != 0 {
					t.Error("the horizon is that of the interval")
				}
				return
			}
			if test.cut {
				t.Errorf("%d is there at %d", first, last)
			}
		})
	}
}

// TestRequestLimit checks that the embedded etcd accepts requests as large as another etcd by default, so that its data
// can move there.
func TestRequestLimit(t *testing.T) {
	t.Parallel()
	s, _ := open(t, Config{})
	if _, err := s.Create(testContext(t), "k/fits", make([]byte, 1_500_000)); err != nil {
		t.Error(err)
	}
	if _, err := s.Create(testContext(t), "k/large", make([]byte, 1_600_000)); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("1.6 MB: %v", err)
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, nosync := range []bool{true, false} {
		b.Run(fmt.Sprintf("fsync=%v", !nosync), func(b *testing.B) {
			var closing time.Duration
			for range b.N {
				s, err := store.Open(b.Context(),
					store.Config{
						Etcd: Config{Dir: filepath.Join(b.TempDir(), "etcd"), NoSync: nosync},
						Log:  slog.New(slog.DiscardHandler),
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
