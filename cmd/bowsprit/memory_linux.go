package main

import (
	"bufio"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseStartup gives back the memory that only starting needed: what the collector holds, and the pages of the
// executable itself. Half of them were touched once, by the initialisation of packages that a server never calls again
// (kubectl's commands and translations); those that are needed come back from the page cache with the next call.
// Measured: 96 MB resident before, 60 to 70 MB after.
func releaseStartup() {
	debug.FreeOSMemory()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[5] != self || fields[1] != "r-xp" && fields[1] != "r--p" {
			continue // never what can be written: that exists in memory only
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err != nil || err2 != nil {
			continue
		}
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED) // a hint
	}
}
