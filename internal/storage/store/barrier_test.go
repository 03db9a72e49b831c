package store_test

import (
	"errors"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
)

// TestBarrier checks that a hold stops the writes behind it, and that a write that passes it stops writers that have
// not seen it.
func TestBarrier(t *testing.T) {
	t.Parallel()
	forEachMode(t, func(t *testing.T, s *store.Store) {
		ctx := etcdtest.Context(t)
		behind := func(seen int64) store.Writer {
			return s.With(store.Options{UnlessFenced: []string{"none"}, Behind: store.Barrier{Name: "uid", Seen: seen}})
		}
		passes := func(hold int64) store.Writer {
			return s.With(store.Options{Passes: store.Barrier{Name: "uid", Seen: hold}})
		}
		refused := func(desc string, err error) {
			t.Helper()
			if !errors.Is(err, store.ErrHeld) {
				t.Errorf("%s: %v", desc, err)
			}
		}
		definition, err := s.Create(ctx, "definition", []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		a, err := behind(definition).Create(ctx, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		hold, err := s.Hold(ctx, "uid")
		if err != nil || hold <= a {
			t.Fatal(hold, err)
		}
		if held, err := s.Held(ctx, "uid"); !held || err != nil {
			t.Error(held, err)
		}
		_, err = behind(definition).Create(ctx, "b", nil)
		refused("create behind the hold", err)
		_, err = behind(definition).Update(ctx, "a", nil, a)
		refused("update behind the hold", err)
		if _, err := s.Create(ctx, "other", nil); err != nil {
			t.Errorf("create of another kind: %v", err)
		}

		again, err := s.Hold(ctx, "uid")
		if err != nil {
			t.Fatal(err)
		}
		_, err = passes(hold).Update(ctx, "definition", []byte("2"), definition)
		refused("update by the former hold", err)
		if err := s.Release(ctx, store.Barrier{Name: "uid", Seen: hold}); err != nil {
			t.Error(err)
		}
		if held, err := s.Held(ctx, "uid"); !held || err != nil {
			t.Errorf("the former hold ends the new one: %v, %v", held, err)
		}
		_, err = passes(again).Update(ctx, "definition", []byte("2"), definition+1000)
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("update of another revision: %v", err)
		}
		now, err := passes(again).Update(ctx, "definition", []byte("2"), definition)
		if err != nil {
			t.Fatal(err)
		}
		if held, err := s.Held(ctx, "uid"); held || err != nil {
			t.Errorf("a passed barrier is held: %v, %v", held, err)
		}
		_, err = behind(definition).Update(ctx, "a", nil, a)
		refused("update that has not seen the definition", err)
		if _, err := behind(now).Update(ctx, "a", nil, a); err != nil {
			t.Error(err)
		}

		last, err := s.Hold(ctx, "uid")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Release(ctx, store.Barrier{Name: "uid", Seen: last}); err != nil {
			t.Error(err)
		}
		if _, err := behind(definition).Create(ctx, "b", nil); err != nil {
			t.Errorf("create after the release: %v", err)
		}
		_, err = passes(last).Update(ctx, "definition", nil, now)
		refused("update by a released hold", err)
	})
}
