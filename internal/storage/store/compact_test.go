package store_test

import (
	"errors"
	"testing"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/testing/etcdtest"
)

// TestCompactTogether checks that stores on one etcd share the work of compaction like kube-apiservers: one of them
// compacts, and never beyond the revision of an interval ago.
func TestCompactTogether(t *testing.T) {
	t.Parallel()
	ctx := etcdtest.Context(t)
	inner := etcdtest.Open(t, embedded.Config{ListenClientURL: "http://127.0.0.1:0"})
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
	tick := func(s *store.Store) {
		t.Helper()
		if err := s.Tick(ctx); err != nil {
			t.Fatal(err)
		}
	}
	readable := func(rev int64) bool {
		_, err := inner.Range(ctx, store.RangeOptions{Revision: rev, Limit: 1})
		if err != nil && !errors.Is(err, store.ErrCompacted) {
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
	for name, s := range map[string]*store.Store{"a": a, "b": b} { // whichever of the two has compacted
		if got := s.Horizon(); got <= first || got > second {
			t.Errorf("horizon of %s: %d, want one after %d up to %d", name, got, first, second)
		}
	}
	third := write()
	tick(a)
	if readable(second) || !readable(third) {
		t.Errorf("after the third round: second %v, third %v", readable(second), readable(third))
	}
	kv, err := inner.Whole(ctx, "compact_rev_key") // kube-apiserver's
	if err != nil || kv.GetVersion() != 3 {
		t.Errorf("%v, %v", kv, err)
	}
}
