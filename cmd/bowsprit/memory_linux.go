package main

import (
	"bufio"
	"io"
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
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	for _, m := range cleanMappings(smaps, self) {
		m.divide()
		m.advise(unix.MADV_DONTNEED)
	}
}

// piece is how much of the executable comes into memory at a time, in bytes: what Linux maps around a page that is
// touched, unless it keeps the file in larger pieces.
const piece = 64 << 10

// divide has the kernel map a piece and no more when a page is touched. Since 6.18 it maps all that it keeps together
// in the page cache, which is 2 MB each of a file that a linker has just written: 84 MB were resident in place of 47.
// What it maps at once does not cross from one mapping into another, so every other piece gets a flag of its own: the
// one that leaves memory out of core dumps, where unchanged pages of a file are not in the first place.
func (m mapping) divide() {
	for start := m.start; start < m.end; {
		number := start / piece // by which a mapping that is divided already is divided in the same places
		end := min((number+1)*piece, m.end)
		if number%2 == 0 {
			mapping{start, end}.advise(unix.MADV_DONTDUMP)
		}
		start = end
	}
}

func (m mapping) advise(advice uintptr) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, advice) // a hint
}

// mapping is a piece of the address space.
type mapping struct{ start, end uintptr }

// cleanMappings returns the read-only mappings of file in smaps (the format of /proc/self/smaps) of which every page is
// as it is in the file. That a mapping cannot be written does not say so: the loader writes relocations first and then
// takes the right away (RELRO), and a process that drops such a page calls through a table of zeros afterwards.
func cleanMappings(smaps io.Reader, file string) []mapping {
	var clean []mapping
	var at mapping // of the file and read-only; the zero value if the current one is not
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if !strings.HasSuffix(fields[0], ":") { // a header: 00400000-01639000 r--p 00000000 08:01 131 /usr/bin/bowsprit
			at = mapping{}
			if len(fields) < 6 || fields[5] != file || fields[1] != "r-xp" && fields[1] != "r--p" {
				continue
			}
			from, to, _ := strings.Cut(fields[0], "-")
			start, err := strconv.ParseUint(from, 16, 64)
			end, err2 := strconv.ParseUint(to, 16, 64)
			if err == nil && err2 == nil {
				at = mapping{uintptr(start), uintptr(end)}
			}
			continue
		}
		// Anonymous pages are those that were written: they exist in memory only.
		if fields[0] == "Anonymous:" && len(fields) > 1 && fields[1] == "0" && at.end > 0 {
			clean = append(clean, at)
		}
	}
	return clean
}
