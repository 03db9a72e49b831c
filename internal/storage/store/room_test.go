//go:build moving

package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestQuota checks that a store at its quota reports it, still reads and deletes, and accepts writes again when there
// is room.
func TestQuota(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := quiet(t, Embedded{Quota: 24 << 20})
	revisions := map[string]int64{}
	for i := 0; ; i++ {
		key := fmt.Sprintf("k/%04d", i)
		rev, err := s.Create(ctx, key, make([]byte, 100<<10))
		if errors.Is(err, ErrNoSpace) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		revisions[key] = rev
	}
	if err := s.CheckRoom(ctx); !errors.Is(err, ErrNoSpace) {
		t.Errorf("check: %v", err)
	}
	if _, err := s.With(Options{RaiseFence: "uid"}).Update(ctx, "k/0000", []byte("x"),
		revisions["k/0000"]); !errors.Is(err, ErrNoSpace) {
		t.Errorf("update: %v", err)
	}
	if err := s.Check(ctx); err != nil {
		t.Errorf("reads are fine, and the check says %v", err)
	}
	r, err := s.Range(ctx, RangeOptions{Prefix: "k/"})
	if err != nil || len(r.Records) != len(revisions) {
		t.Errorf("%d records, %v; want %d", len(r.Records), err, len(revisions))
	}
	left := len(revisions)
	for key, rev := range revisions {
		if left--; left < 50 { // how far etcd exceeds its quota depends on the machine; this is a fifth of it
			break
		}
		// etcd gives up after seven seconds on a busy machine
		if _, err := s.Delete(ctx, key, rev); err != nil && !errors.Is(err, ErrUncertain) {
			t.Fatalf("delete: %v", err)
		}
	}
	for { // each refusal requests room
		if _, err = s.Create(ctx, "k/new", make([]byte, 100<<10)); !errors.Is(err, ErrNoSpace) {
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

// quiet returns an embedded store that may log errors.
func quiet(t *testing.T, e Embedded) *Store {
	t.Helper()
	e.Dir, e.NoSync = filepath.Join(t.TempDir(), "etcd"), true
	s, err := Open(testContext(t), Config{Embedded: &e, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// An external cluster's alarm is seen, and its end too.
func TestQuotaExternal(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	inner := quiet(t, Embedded{Quota: 4 << 20, ListenClientURL: "http://127.0.0.1:0"})
	s := connect(t, inner)
	if err := s.CheckRoom(ctx); err != nil {
		t.Error(err)
	}
	var err error
	for i := 0; err == nil; i++ {
		_, err = s.Create(ctx, fmt.Sprintf("k/%d", i), make([]byte, 100<<10))
	}
	if !errors.Is(err, ErrNoSpace) {
		t.Error(err)
	}
	if err := s.CheckRoom(ctx); !errors.Is(err, ErrNoSpace) {
		t.Errorf("check: %v", err)
	}
	if _, err := s.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
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
	s := open(t, Embedded{})
	l := s.backend.(*local)
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
	if _, err := s.client.Compact(ctx, rev, clientv3.WithCompactPhysical()); err != nil {
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
	s.room.wanted <- struct{}{}
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
	if r, err := s.Range(ctx, RangeOptions{Prefix: "during/"}); err != nil || len(r.Records) != n {
		t.Errorf("%d of %d writes are there, %v", len(r.Records), n, err)
	}
	temporary, err := filepath.Glob(filepath.Join(l.dir, "member", "snap", "*tmp*"))
	if err != nil || len(temporary) > 0 {
		t.Errorf("left behind: %v, %v", temporary, err)
	}
}

// TestCompactTogether checks that stores on one etcd share the work of compaction like kube-apiservers: one of them
// compacts, and never beyond the revision of an interval ago.
func TestCompactTogether(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	inner := open(t, Embedded{ListenClientURL: "http://127.0.0.1:0"})
	a, b := connect(t, inner), connect(t, inner)
	write := func() int64 {
		rev, err := inner.Create(ctx, "k", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inner.Delete(ctx, "k", rev); err != nil {
			t.Fatal(err)
		}
		return rev
	}
	tick := func(s *Store) {
		t.Helper()
		if err := s.tick(ctx); err != nil {
			t.Fatal(err)
		}
	}
	readable := func(rev int64) bool {
		_, err := inner.Range(ctx, RangeOptions{Revision: rev, Limit: 1})
		if err != nil && !errors.Is(err, ErrCompacted) {
			t.Fatal(err)
		}
		return err == nil
	}
	first := write()
	tick(a) // starts the count
	tick(b) // remembers the version
	second := write()
	if !readable(first) {
		t.Error("the first round has cut")
	}
	tick(b) // b's version is a's: b compacts now, to the revision of the previous round
	tick(a) // finds that another was faster
	if readable(first) {
		t.Error("nothing was cut")
	}
	if !readable(second) {
		t.Error("what is younger than a round was cut")
	}
	for name, s := range map[string]*Store{"a": a, "b": b} { // whichever of the two has compacted
		if got := s.Horizon(); got <= first || got > second {
			t.Errorf("horizon of %s: %d, want one after %d up to %d", name, got, first, second)
		}
	}
	third := write()
	tick(a)
	if readable(second) || !readable(third) {
		t.Errorf("after the third round: second %v, third %v", readable(second), readable(third))
	}
	kv, err := inner.client.Get(ctx, compactKey)
	if err != nil || len(kv.Kvs) != 1 || kv.Kvs[0].Version != 3 {
		t.Errorf("%v, %v", kv, err)
	}
}
