package charge

import (
	"strconv"
	"strings"
)

const (
	// usablePart is the part of the memory that requests may take together by default.
	usablePart = 4
	// mostDefault is the most memory, in bytes, that they may take together by default.
	mostDefault = 1 << 30
)

// Default returns the bound of a ledger, in bytes, for the memory that the process may use: the least of limit (the Go
// runtime's), the limit of the control group and the memory of the machine. read reads a file.
func Default(limit int64, read func(string) ([]byte, error)) int64 {
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := read(file)
		if most, failed := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && failed == nil {
			limit = min(limit, most)
		}
	}
	text, _ := read("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err == nil {
				limit = min(limit, kilobytes<<10)
			}
		}
	}
	return max(Least, min(limit/usablePart, mostDefault))
}
