package hostos

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestCleanMappings checks that relocated and then protected pages (RELRO) count as changed. They look like the rest of
// the file, but exist in memory only.
func TestCleanMappings(t *testing.T) {
	t.Parallel()
	const smaps = `00400000-0163a000 r--p 00000000 08:01 131 /usr/bin/bowsprit
Size:              18664 kB
Anonymous:             0 kB
0163a000-03a20000 r-xp 0123a000 08:01 131 /usr/bin/bowsprit
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
0653f000-06540000 r--p 0613e000 08:01 131 /usr/bin/bowsprit
Anonymous:             4 kB
06540000-0667e000 rw-p 0613f000 08:01 131 /usr/bin/bowsprit
Anonymous:             0 kB
7f0000000000-7f0000021000 r--p 00000000 08:01 7 /lib/libc.so.6
Anonymous:             0 kB
7fff00000000-7fff00021000 rw-p 00000000 00:00 0 [stack]
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x163a000}, {0x163a000, 0x3a20000}}
	if got := cleanMappings(strings.NewReader(smaps), "/usr/bin/bowsprit"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// TestReleaseStartup allocates memory from the system after the release. A binary that links C (such as this test with
// -race) calls the C library through a table of the loader, and crashes if that table is lost.
func TestReleaseStartup(t *testing.T) {
	ReleaseStartup()
	var kept [][]byte
	for range 64 {
		kept = append(kept, make([]byte, 4<<20))
	}
	for i := range 200_000 { // the heap maps its metadata in separate pieces
		kept = append(kept, make([]byte, 16+i%64))
	}
	if len(kept) != 200_064 {
		t.Error("lost")
	}
}

// TestDivide checks which pieces of a mapping get the separating flag: the pieces with an even number. So a divided
// mapping, in which each piece is a mapping of its own, is divided at the same places again.
func TestDivide(t *testing.T) {
	const size = 9*piece + 4096
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	start := uintptr(unsafe.Pointer(&memory[0]))
	for range 2 {
		mapping{start, start + size}.divide()
		for at := start; at < start+size; {
			end := min((at/piece+1)*piece, start+size)
			mapping{at, end}.divide()
			at = end
		}
		smaps, err := os.ReadFile("/proc/self/smaps")
		if err != nil {
			t.Fatal(err)
		}
		pieces := 0
		var from, to uintptr
		for line := range strings.Lines(string(smaps)) {
			var a, b uintptr
			if _, err := fmt.Sscanf(line, "%x-%x ", &a, &b); err == nil {
				from, to = a, b
			}
			flags, ok := strings.CutPrefix(line, "VmFlags:")
			if !ok || from < start || to > start+size {
				continue
			}
			if slices.Contains(strings.Fields(flags), "dd") != (from/piece%2 == 0) || to-from > piece {
				t.Errorf("the piece from %d to %d has the flags%s", from-start, to-start, flags)
			}
			pieces++
		}
		if pieces < 8 {
			t.Errorf("%d pieces", pieces)
		}
	}
}
