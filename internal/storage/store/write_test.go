//go:build moving

package store

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestFence checks that a fence raised by a write rejects later writes behind it, and no others.
func TestFence(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *Store) {
		ctx := testContext(t)
		inside := s.With(Options{UnlessFenced: []string{"other", "uid"}})
		rev, err := s.Create(ctx, "definition", []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		a, err := inside.Create(ctx, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inside.Create(ctx, "a", []byte("another")); !errors.Is(err, ErrExists) {
			t.Errorf("create of what exists: %v", err)
		}
		raise := s.With(Options{RaiseFence: "uid"})
		if _, err := raise.Update(ctx, "definition", []byte("2"), rev+1); !errors.Is(err, ErrConflict) {
			t.Errorf("update of another revision: %v", err)
		}
		if _, err := inside.Create(ctx, "b", nil); err != nil {
			t.Errorf("the fence stands although its write failed: %v", err)
		}
		next, err := raise.Update(ctx, "definition", []byte("2"), rev)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"a", "c"} { // whether it exists or not
			if _, err := inside.Create(ctx, key, nil); !errors.Is(err, ErrFenced) {
				t.Errorf("create of %s behind the fence: %v", key, err)
			}
		}
		if _, err := inside.Update(ctx, "a", []byte("2"), a); !errors.Is(err, ErrFenced) {
			t.Errorf("update behind the fence: %v", err)
		}
		if _, err := s.With(Options{UnlessFenced: []string{"another"}}).Create(ctx, "c", nil); err != nil {
			t.Errorf("create under another fence: %v", err)
		}
		if now, err := s.Revision(ctx); err != nil || now != next+1 {
			t.Errorf("revision %d, %v; want %d: refused writes change nothing", now, err, next+1)
		}
		r, err := s.Range(ctx, RangeOptions{})
		if err != nil || len(r.Records) != 4 {
			t.Errorf("%d records, %v; a fence is not one of them", len(r.Records), err)
		}
	})
}

// TestTurn checks that a sequence refuses a writer that has not seen the previous write, whatever its key.
func TestTurn(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *Store) {
		ctx := testContext(t)
		seen, err := s.Revision(ctx)
		if err != nil {
			t.Fatal(err)
		}
		at := func(seen int64) Writer { return s.With(Options{Sequence: Sequence{Name: "names", Seen: seen}}) }
		a, err := at(seen).Create(ctx, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := at(seen).Create(ctx, "b", nil); !errors.Is(err, ErrOvertaken) {
			t.Errorf("create that has not seen the other: %v", err)
		}
		if _, err := at(seen).Update(ctx, "a", nil, a); !errors.Is(err, ErrOvertaken) {
			t.Errorf("update that has not seen the other: %v", err)
		}
		if _, err := s.With(Options{Sequence: Sequence{Name: "others", Seen: seen}}).Create(ctx, "c", nil); err != nil {
			t.Errorf("another turn: %v", err)
		}
		if _, err := at(a).Create(ctx, "a", []byte("another")); !errors.Is(err, ErrExists) {
			t.Errorf("create of what exists: %v", err)
		}
		if _, err := at(a).Update(ctx, "a", nil, a+100); !errors.Is(err, ErrConflict) {
			t.Errorf("update of another revision: %v", err)
		}
		if _, err := at(a).Update(ctx, "none", nil, a); !errors.Is(err, ErrNotFound) {
			t.Errorf("update of a missing key: %v", err)
		}
		b, err := at(a).Create(ctx, "b", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := at(b).Delete(ctx, "b", b); err != nil {
			t.Error(err)
		}
	})
}

// TestTTL checks that a key with a TTL expires and the watch reports it; written again without one, it stays.
func TestTTL(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *Store) {
		ctx := testContext(t)
		short := s.With(Options{TTL: 5 * time.Second}) // long enough for a busy machine to update b before it expires
		a, err := short.Create(ctx, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		watch := s.Watch(ctx, a)
		b, err := short.Create(ctx, "b", nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err = s.Update(ctx, "b", nil, b); err != nil {
			t.Fatal(err)
		}
		got := collect(t, watch, b+1)
		if last := got[len(got)-1]; len(got) != 4 || last.Key != "a" || !last.Deleted {
			t.Errorf("%+v", got)
		}
		if r, err := s.Get(ctx, "b"); err != nil || r.Revision != b {
			t.Errorf("b: %+v, %v", r, err)
		}
	})
}

// TestLeaseShared checks that keys written within a minute share a lease, up to the number that fits into a
// transaction.
func TestLeaseShared(t *testing.T) {
	t.Parallel()
	s := open(t, Embedded{})
	ctx := testContext(t)
	now := time.Now()
	s.leases.now = func() time.Time { return now }
	id := func(ttl time.Duration) int64 {
		t.Helper()
		id, err := s.lease(ctx, ttl)
		if err != nil {
			t.Fatal(err)
		}
		return int64(id)
	}
	first := id(time.Hour)
	if other := id(2 * time.Hour); other == first {
		t.Error("another TTL got the same lease")
	}
	now = now.Add(59 * time.Second)
	for range leaseKeys - 1 {
		if got := id(time.Hour); got != first {
			t.Fatalf("lease %d, want %d", got, first)
		}
	}
	second := id(time.Hour)
	if second == first {
		t.Errorf("more than %d keys under one lease", leaseKeys)
	}
	now = now.Add(time.Minute)
	if third := id(time.Hour); third == second {
		t.Error("a lease is given out after its time")
	}
	if l, err := s.client.TimeToLive(ctx, s.leases.of(time.Hour).id); err != nil || l.GrantedTTL != 3660 {
		t.Errorf("granted: %+v, %v", l, err)
	}
	for i := range leaseKinds + 1 {
		id(time.Duration(i+1) * time.Minute)
	}
	if n := len(s.leases.mu.byTTL); n > leaseKinds {
		t.Errorf("%d leases are remembered", n)
	}
}

// A lease that etcd has lost does not fail a write.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *Store) { // etcd's warning is allowed by open
		ctx := testContext(t)
		w := s.With(Options{TTL: time.Hour})
		if _, err := w.Create(ctx, "a", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := s.client.Revoke(ctx, s.leases.of(time.Hour).id); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Create(ctx, "b", nil); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkCreateFenced(b *testing.B) {
	for name, o := range map[string]Options{
		"plain": {},
		"fences": {
			UnlessFenced: []string{"11111111-1111-1111-1111-111111111111", "21111111-1111-1111-1111-111111111111"},
		},
	} {
		b.Run(name, func(b *testing.B) {
			s := open(b, Embedded{})
			value := make([]byte, 5<<10)
			n := 0
			for b.Loop() {
				if _, err := s.With(o).Create(b.Context(), fmt.Sprintf("k/%d", n), value); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}

// Changes of other keys are made together with the write, or not at all.
func TestAlso(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *Store) {
		ctx := testContext(t)
		create := func(key string) Change { return Change{Key: key, Value: []byte(key)} }
		rev, err := s.With(Options{Also: []Change{create("lock/1"), create("lock/2")}}).Create(ctx, "a", []byte("a"))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"a", "lock/1", "lock/2"} {
			if r, err := s.Get(ctx, key); err != nil || r.Revision != rev {
				t.Errorf("%s: revision %d, %v; want %d", key, r.Revision, err, rev)
			}
		}
		for name, w := range map[string]struct {
			also Change
			want error
			do   func(w Writer) error
		}{
			"create, but the other key is there": {create("lock/2"), ErrTaken,
				func(w Writer) error { _, err := w.Create(ctx, "b", nil); return err }},
			"create what is there": {create("lock/3"), ErrExists,
				func(w Writer) error { _, err := w.Create(ctx, "a", nil); return err }},
			"create what is there, as the other": {create("lock/2"), ErrExists,
				func(w Writer) error { _, err := w.Create(ctx, "a", nil); return err }},
			"update, but the other key is there": {create("lock/2"), ErrTaken,
				func(w Writer) error { _, err := w.Update(ctx, "a", []byte("b"), rev); return err }},
			"update of another revision": {create("lock/3"), ErrConflict,
				func(w Writer) error { _, err := w.Update(ctx, "a", []byte("b"), rev+1); return err }},
			"delete, but the other has changed": {Change{Key: "lock/1", Revision: rev + 1, Remove: true}, ErrTaken,
				func(w Writer) error { _, err := w.Delete(ctx, "a", rev); return err }},
			"delete, but the other is gone": {Change{Key: "lock/3", Revision: rev, Remove: true}, ErrTaken,
				func(w Writer) error { _, err := w.Delete(ctx, "a", rev); return err }},
			"delete of what is gone": {create("lock/3"), ErrNotFound,
				func(w Writer) error { _, err := w.Delete(ctx, "b", rev); return err }},
			"create behind a fence": {create("lock/3"), nil,
				func(w Writer) error { _, err := w.Create(ctx, "c", nil); return err }},
		} {
			err := w.do(s.With(Options{UnlessFenced: []string{"uid"}, Also: []Change{w.also}}))
			if !errors.Is(err, w.want) {
				t.Errorf("%s: %v, want %v", name, err, w.want)
			}
		}
		next, err := s.With(Options{
			Also: []Change{{Key: "lock/1", Revision: rev, Remove: true},
				{Key: "lock/2", Revision: rev, Value: []byte("2")}},
		}).Delete(ctx, "a", rev)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Range(ctx, RangeOptions{})
		var keys []string
		for _, record := range r.Records {
			keys = append(keys, record.Key)
		}
		if err != nil || fmt.Sprint(keys) != "[c lock/2 lock/3]" || r.Revision != next {
			t.Errorf("keys %v at %d, %v; want [c lock/2 lock/3] at %d: refused writes change nothing", keys, r.Revision,
				err, next)
		}
	})
}

// TestRequestLimit checks that the embedded etcd accepts requests as large as another etcd by default, so that its data
// can move there.
func TestRequestLimit(t *testing.T) {
	t.Parallel()
	s := open(t, Embedded{})
	if _, err := s.Create(testContext(t), "k/fits", make([]byte, 1_500_000)); err != nil {
		t.Error(err)
	}
	if _, err := s.Create(testContext(t), "k/large", make([]byte, 1_600_000)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("1.6 MB: %v", err)
	}
}
