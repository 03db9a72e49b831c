package stage

import (
	"syscall"
	"testing"
)

// limitMemory has the process die when it holds more than 1 GB. What is only reserved does not count.
func limitMemory(t *testing.T) {
	t.Helper()
	const most, data = 1 << 30, 2 // RLIMIT_DATA
	if err := syscall.Setrlimit(data, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		t.Fatal(err)
	}
}
