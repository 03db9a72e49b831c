//go:build linux || darwin

package doctor

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

const (
	fewFiles  = 4096
	fewMemory = 256 << 20
)

// limits checks the resource limits of a process. Go raises the soft limit of open files to the hard limit.
func (e *examination) limits() {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		if files.Max < fewFiles {
			e.add("open files", Warning, "raise it: ulimit -Hn, or LimitNOFILE= of the service",
				"at most %d: each client and each watch uses one", files.Max)
		} else {
			e.add("open files", OK, "", "at most %d", files.Max)
		}
	}
	text, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	if most, failed := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && failed == nil {
		if most < fewMemory {
			e.add("memory", Warning, "raise the limit of the control group to at least 256 MB", "at most %s",
				output.Size(most))
		} else {
			e.add("memory", OK, "", "at most %s", output.Size(most))
		}
	}
}

// diskFree is how much an unprivileged user may still write.
func diskFree(dir string) (free int64, known bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
