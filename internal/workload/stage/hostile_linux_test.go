package stage

import (
	"syscall"
	"testing"
)

// limitMemory makes the process die when it holds more than 1 GB. Reserved memory does not count.
func limitMemory(t *testing.T) {
	t.Helper()
	const most, data = 1 << 30, 2 // RLIMIT_DATA
	if err := syscall.Setrlimit(data, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		t.Fatal(err)
	}
}
