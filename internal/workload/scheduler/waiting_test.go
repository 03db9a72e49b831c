package scheduler

import (
	"slices"
	"testing"
)

// TestWaiting checks that pods wait by priority, then by arrival, and that a pod keeps its place after a failed retry.
func TestWaiting(t *testing.T) {
	t.Parallel()
	w := newWaiting()
	want := func(desc string, keys ...string) {
		t.Helper()
		var got []string
		w.each(func(key string) { got = append(got, key) })
		if !slices.Equal(got, keys) {
			t.Errorf("%s: %q, want %q", desc, got, keys)
		}
	}
	for _, p := range []struct {
		key      string
		priority int32
	}{{"a", 0}, {"b", 10}, {"c", 0}, {"d", 10}, {"e", -5}, {"a", 0}} {
		w.add(p.key, p.priority)
	}
	want("all", "b", "d", "a", "c", "e")
	w.remove("d")
	w.remove("d")
	w.add("c", 20)
	want("without d, c above", "c", "b", "a", "e")
	w.add("d", 10)
	want("d again", "c", "b", "d", "a", "e")
	if !w.has("d") || w.has("f") {
		t.Error("who waits is not known")
	}
}
