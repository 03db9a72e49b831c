package charge

import (
	"math"
	"runtime"
	"testing"
)

func TestTightAt(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int64]uint64{math.MaxInt64: tightWithoutLimit, 400 << 20: 300 << 20, 0: 0} {
		if got := tightAt(limit); got != want {
			t.Errorf("limit %d: %d, want %d", limit, got, want)
		}
	}
	if runtime.GC(); LiveHeap() == 0 {
		t.Error("no live heap")
	}
}
