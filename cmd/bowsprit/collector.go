package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// largeHeap is the live heap, in bytes, from which a server with simulated nodes has memory collected sooner: that
	// of some thousand pods.
	largeHeap = 64 << 20
	// sooner is how much of what is live may be allocated anew until then, in percent. 100 is Go's own.
	sooner = 50
)

// collectSooner has the garbage of this process collected sooner once its live heap is large, unless GOGC says when.
// Simulated pods are there to be many on a small machine: 10,000 take 65 MB less by that, and a quarter more CPU time
// while they start.
func collectSooner(large uint64) {
	if _, ok := os.LookupEnv("GOGC"); ok {
		return
	}
	mark := new([64]byte) // too large to share its memory with another
	runtime.AddCleanup(mark, func(large uint64) {
		if liveHeap() >= large {
			debug.SetGCPercent(sooner)
			return
		}
		collectSooner(large) // it is looked at after the next collection
	}, large)
}

// liveHeap is what the last garbage collection left, in bytes.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
