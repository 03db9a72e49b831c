package embedded

import (
	"errors"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// TestFirstRevision checks that a store with a first revision assigns larger ones, and reports older ones as compacted.
func TestFirstRevision(t *testing.T) {
	t.Parallel()
	c := Config{Dir: t.TempDir(), NoSync: true, FirstRevision: 1 << 50}
	s, err := store.Open(t.Context(), store.Config{Etcd: c})
	if err != nil {
		t.Fatal(err)
	}
	rev, err := s.Create(t.Context(), "a/b", []byte("1"))
	if err != nil || rev <= 1<<50 {
		t.Fatalf("created at %d: %v", rev, err)
	}
	if all, err := s.Range(t.Context(), store.RangeOptions{}); err != nil || len(all.Records) != 1 {
		t.Errorf("%+v %v", all, err)
	}
	if _, err := s.Range(t.Context(), store.RangeOptions{Revision: 7}); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("a read at an earlier revision: %v", err)
	}
	for b := range s.Watch(t.Context(), 7) {
		if !errors.Is(b.Err, store.ErrCompacted) {
			t.Errorf("a watch from an earlier revision: %+v", b)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.FirstRevision = 1 << 51
	if s, err = store.Open(t.Context(), store.Config{Etcd: c}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if again, err := s.Revision(t.Context()); err != nil || again != rev {
		t.Errorf("opened again at %d, was %d: %v", again, rev, err)
	}
	if r, err := s.Get(t.Context(), "a/b"); err != nil || string(r.Value) != "1" {
		t.Errorf("%+v %v", r, err)
	}
}
