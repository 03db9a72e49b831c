package hostos

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// TestCollectSooner checks that a large heap lowers the GOGC value at the next collection, and a small heap does not.
func TestCollectSooner(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	percent := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	CollectSooner(1 << 50)
	for range 5 {
		runtime.GC()
	}
	if got := percent(); got != 100 {
		t.Errorf("a small heap: %d %%", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	CollectSooner(1)
	for percent() != sooner {
		if runtime.GC(); ctx.Err() != nil {
			t.Fatalf("a large heap: %d %%", percent())
		}
	}
}
