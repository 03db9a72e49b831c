// Package leak detects leaks after a load: goroutines, memory, calls.
package leak

import (
	"runtime"
	"testing"
	"time"
)

// HeapInUse returns the bytes in spans that hold objects, after a garbage collection.
func HeapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// Settle waits until a figure is within its bound, and fails t after two minutes. noun names the figure, such as
// "goroutines".
func Settle(t *testing.T, noun string, figure func() (now, most int64)) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); ; <-tick.C {
		now, most := figure()
		if now <= most {
			return
		}
		if time.Now().After(end) {
			t.Errorf("%d %s are left, of at most %d", now, noun, most)
			return
		}
	}
}
