package hostos

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/bowsprit/bowsprit/internal/request/charge"
)

const (
	// LargeHeap is the size of the live heap, in bytes, from which a server with simulated nodes collects garbage
	// sooner. Some thousand pods take that much.
	LargeHeap = 64 << 20
	// sooner is the GOGC value for a large heap. Go's default is 100.
	sooner = 50
)

// CollectSooner lowers the GOGC value of this process once its live heap is large, unless the environment sets GOGC.
// Many simulated pods should fit on a small machine: 10,000 pods take 65 MB less, and a quarter more CPU time while
// they start.
func CollectSooner(large uint64) {
	if _, ok := os.LookupEnv("GOGC"); ok {
		return
	}
	mark := new([64]byte) // too large to share its memory with another
	runtime.AddCleanup(mark, func(large uint64) {
		if charge.LiveHeap() >= large {
			debug.SetGCPercent(sooner)
			return
		}
		CollectSooner(large) // runs after the next collection
	}, large)
}
