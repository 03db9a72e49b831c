package watchcache

import (
	"fmt"
	"testing"
)

// TestInternerIsBounded checks that an interner forgets values when it is full, and still returns the right ones.
func TestInternerIsBounded(t *testing.T) {
	t.Parallel()
	in := newInterner()
	for i := range 3 * internLimit {
		text := fmt.Sprint("a", i)
		if got := in.text([]byte(text)); got != text {
			t.Fatalf("text %d is %q", i, got)
		}
		if got := in.labels([]byte(`{"a":"` + text + `"}`)); got["a"] != text {
			t.Fatalf("labels %d are %v", i, got)
		}
	}
	if len(in.texts) > internLimit || len(in.sets) > internLimit {
		t.Errorf("%d texts and %d sets of labels, want at most %d", len(in.texts), len(in.sets), internLimit)
	}
}
