package charge

import (
	"math"
	"runtime/metrics"
)

// tightWithoutLimit is the live heap, in bytes, from which memory is tight if the Go runtime has no limit.
const tightWithoutLimit = 1 << 30

// Tight reports whether the live heap has reached three quarters of the Go runtime's limit (debug.SetMemoryLimit), or
// a gigabyte if there is no limit.
func Tight(limit int64) bool { return LiveHeap() > tightAt(limit) }

func tightAt(limit int64) uint64 {
	if limit == math.MaxInt64 {
		return tightWithoutLimit
	}
	return uint64(limit) / 4 * 3
}

// LiveHeap returns the size of the heap after the last garbage collection, in bytes.
func LiveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
