package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
)

// TestFence checks that a fence raised by a write rejects later writes behind it, and no others.
func TestFence(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *store.Store) {
		ctx := etcdtest.Context(t)
		inside := s.With(store.Options{UnlessFenced: []string{"other", "uid"}})
		rev, err := s.Create(ctx, "definition", []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		a, err := inside.Create(ctx, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inside.Create(ctx, "a", []byte("another")); !errors.Is(err, store.ErrExists) {
			t.Errorf("create of what exists: %v", err)
		}
		raise := s.With(store.Options{RaiseFence: "uid"})
		if _, err := raise.Update(ctx, "definition", []byte("2"), rev+1); !errors.Is(err, store.ErrConflict) {
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
			if _, err := inside.Create(ctx, key, nil); !errors.Is(err, store.ErrFenced) {
				t.Errorf("create of %s behind the fence: %v", key, err)
			}
		}
		if _, err := inside.Update(ctx, "a", []byte("2"), a); !errors.Is(err, store.ErrFenced) {
			t.Errorf("update behind the fence: %v", err)
		}
		if _, err := s.With(store.Options{UnlessFenced: []string{"another"}}).Create(ctx, "c", nil); err != nil {
			t.Errorf("create under another fence: %v", err)
		}
		if now, err := s.Revision(ctx); err != nil || now != next+1 {
			t.Errorf("revision %d, %v; want %d: refused writes change nothing", now, err, next+1)
		}
		r, err := s.Range(ctx, store.RangeOptions{})
		if err != nil || len(r.Records) != 4 {
			t.Errorf("%d records, %v; a fence is not one of them", len(r.Records), err)
		}
	})
}

// TestTurn checks that a sequence refuses a writer that has not seen the previous write, whatever its key.
func TestTurn(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *store.Store) {
		ctx := etcdtest.Context(t)
		seen, err := s.Revision(ctx)
		if err != nil {
			t.Fatal(err)
		}
		at := func(seen int64) store.Writer {
			return s.With(store.Options{Sequence: store.Sequence{Name: "names", Seen: seen}})
		}
		a, err := at(seen).Create(ctx, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := at(seen).Create(ctx, "b", nil); !errors.Is(err, store.ErrOvertaken) {
			t.Errorf("create that has not seen the other: %v", err)
		}
		if _, err := at(seen).Update(ctx, "a", nil, a); !errors.Is(err, store.ErrOvertaken) {
			t.Errorf("update that has not seen the other: %v", err)
		}
		other := s.With(store.Options{Sequence: store.Sequence{Name: "others", Seen: seen}})
		if _, err := other.Create(ctx, "c", nil); err != nil {
			t.Errorf("another turn: %v", err)
		}
		if _, err := at(a).Create(ctx, "a", []byte("another")); !errors.Is(err, store.ErrExists) {
			t.Errorf("create of what exists: %v", err)
		}
		if _, err := at(a).Update(ctx, "a", nil, a+100); !errors.Is(err, store.ErrConflict) {
			t.Errorf("update of another revision: %v", err)
		}
		if _, err := at(a).Update(ctx, "none", nil, a); !errors.Is(err, store.ErrNotFound) {
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
	forEachMode(t, func(t *testing.T, s *store.Store) {
		ctx := etcdtest.Context(t)
		// Long enough for a busy machine to update b before it expires.
		short := s.With(store.Options{TTL: 5 * time.Second})
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

func BenchmarkCreateFenced(b *testing.B) {
	for name, o := range map[string]store.Options{
		"plain": {},
		"fences": {
			UnlessFenced: []string{"11111111-1111-1111-1111-111111111111", "21111111-1111-1111-1111-111111111111"},
		},
	} {
		b.Run(name, func(b *testing.B) {
			s := etcdtest.Open(b, embedded.Config{})
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
	forEachMode(t, func(t *testing.T, s *store.Store) {
		ctx := etcdtest.Context(t)
		create := func(key string) store.Change { return store.Change{Key: key, Value: []byte(key)} }
		locked := s.With(store.Options{Also: []store.Change{create("lock/1"), create("lock/2")}})
		rev, err := locked.Create(ctx, "a", []byte("a"))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"a", "lock/1", "lock/2"} {
			if r, err := s.Get(ctx, key); err != nil || r.Revision != rev {
				t.Errorf("%s: revision %d, %v; want %d", key, r.Revision, err, rev)
			}
		}
		for name, w := range map[string]struct {
			also store.Change
			want error
			do   func(w store.Writer) error
		}{
			"create, but the other key is there": {create("lock/2"), store.ErrTaken,
				func(w store.Writer) error { _, err := w.Create(ctx, "b", nil); return err }},
			"create what is there": {create("lock/3"), store.ErrExists,
				func(w store.Writer) error { _, err := w.Create(ctx, "a", nil); return err }},
			"create what is there, as the other": {create("lock/2"), store.ErrExists,
				func(w store.Writer) error { _, err := w.Create(ctx, "a", nil); return err }},
			"update, but the other key is there": {create("lock/2"), store.ErrTaken,
				func(w store.Writer) error { _, err := w.Update(ctx, "a", []byte("b"), rev); return err }},
			"update of another revision": {create("lock/3"), store.ErrConflict,
				func(w store.Writer) error { _, err := w.Update(ctx, "a", []byte("b"), rev+1); return err }},
			"delete, but the other has changed": {
				store.Change{Key: "lock/1", Revision: rev + 1, Remove: true}, store.ErrTaken,
				func(w store.Writer) error { _, err := w.Delete(ctx, "a", rev); return err },
			},
			"delete, but the other is gone": {store.Change{Key: "lock/3", Revision: rev, Remove: true}, store.ErrTaken,
				func(w store.Writer) error { _, err := w.Delete(ctx, "a", rev); return err }},
			"delete of what is gone": {create("lock/3"), store.ErrNotFound,
				func(w store.Writer) error { _, err := w.Delete(ctx, "b", rev); return err }},
			"create behind a fence": {create("lock/3"), nil,
				func(w store.Writer) error { _, err := w.Create(ctx, "c", nil); return err }},
		} {
			err := w.do(s.With(store.Options{UnlessFenced: []string{"uid"}, Also: []store.Change{w.also}}))
			if !errors.Is(err, w.want) {
				t.Errorf("%s: %v, want %v", name, err, w.want)
			}
		}
		next, err := s.With(store.Options{
			Also: []store.Change{{Key: "lock/1", Revision: rev, Remove: true},
				{Key: "lock/2", Revision: rev, Value: []byte("2")}},
		}).Delete(ctx, "a", rev)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Range(ctx, store.RangeOptions{})
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
