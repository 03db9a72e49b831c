package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// TestQuota checks that a store at its quota reports it, still reads and deletes, and accepts writes again when there
// is room.
func TestQuota(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s, _ := openLogged(t, Config{Quota: 24 << 20}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	revisions := map[string]int64{}
	for i := 0; ; i++ {
		key := fmt.Sprintf("k/%04d", i)
		rev, err := s.Create(ctx, key, make([]byte, 100<<10))
		if errors.Is(err, store.ErrNoSpace) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		revisions[key] = rev
	}
	if err := s.CheckRoom(ctx); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("check: %v", err)
	}
	if _, err := s.With(store.Options{RaiseFence: "uid"}).Update(ctx, "k/0000", []byte("x"),
		revisions["k/0000"]); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("update: %v", err)
	}
	if err := s.Check(ctx); err != nil {
		t.Errorf("reads are fine, and the check says %v", err)
	}
	r, err := s.Range(ctx, store.RangeOptions{Prefix: "k/"})
	if err != nil || len(r.Records) != len(revisions) {
		t.Errorf("%d records, %v; want %d", len(r.Records), err, len(revisions))
	}
	left := len(revisions)
	for key, rev := range revisions {
		if left--; left < 50 { // how far etcd exceeds its quota depends on the machine; this is a fifth of it
			break
		}
		// etcd gives up after seven seconds on a busy machine
		if _, err := s.Delete(ctx, key, rev); err != nil && !errors.Is(err, store.ErrUncertain) {
			t.Fatalf("delete: %v", err)
		}
	}
	for { // each refusal requests room
		if _, err = s.Create(ctx, "k/new", make([]byte, 100<<10)); !errors.Is(err, store.ErrNoSpace) {
			break
		}
	}
	if err != nil {
		t.Error(err)
	}
	if err := s.CheckRoom(ctx); err != nil {
		t.Errorf("check: %v", err)
	}
}

func TestWasteful(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for _, c := range []struct {
		file, used, quota int64
		want              bool
	}{
		{100 * mb, 90 * mb, 8192 * mb, false},
		{100 * mb, 30 * mb, 8192 * mb, true},
		{60 * mb, 1 * mb, 8192 * mb, false}, // already small
		{8000 * mb, 5000 * mb, 8192 * mb, true},
		{8000 * mb, 7000 * mb, 8192 * mb, false}, // would not help
		{1000 * mb, 600 * mb, 8192 * mb, false},
	} {
		if got := wasteful(c.file, c.used, c.quota); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestDefragment checks that a mostly free database shrinks while reads and writes continue.
func TestDefragment(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s, l := open(t, Config{})
	for i := range 900 {
		rev, err := s.Create(ctx, "k", make([]byte, 100<<10))
		if err == nil {
			_, err = s.Delete(ctx, "k", rev)
		}
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := s.Create(ctx, "kept", []byte("v")); err != nil {
				t.Fatal(err)
			}
		}
	}
	rev, err := s.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.client.Compact(ctx, rev, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	l.etcd.Server.Backend().ForceCommit()
	before, _ := l.sizes()
	writing, stop := context.WithCancel(ctx)
	written := make(chan int)
	go func() {
		n := 0
		for ; writing.Err() == nil; n++ {
			if _, err := s.Create(ctx, "during/"+strconv.Itoa(n), nil); err != nil {
				t.Error(err)
				break
			}
		}
		written <- n
	}()
	l.room.wanted <- struct{}{}
	for file := before; file > before/2; file, _ = l.sizes() {
		if err := ctx.Err(); err != nil {
			t.Fatalf("the database still has %d bytes", file)
		}
		if r, err := s.Get(ctx, "kept"); err != nil || string(r.Value) != "v" {
			t.Fatalf("read: %v", err)
		}
	}
	stop()
	n := <-written
	if r, err := s.Range(ctx, store.RangeOptions{Prefix: "during/"}); err != nil || len(r.Records) != n {
		t.Errorf("%d of %d writes are there, %v", len(r.Records), n, err)
	}
	temporary, err := filepath.Glob(filepath.Join(l.dir, "member", "snap", "*tmp*"))
	if err != nil || len(temporary) > 0 {
		t.Errorf("left behind: %v, %v", temporary, err)
	}
}
