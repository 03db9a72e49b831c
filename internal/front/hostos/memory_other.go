//go:build !linux

package hostos

import (
	"runtime/debug"
)

// ReleaseStartup gives back the memory that only starting needed.
func ReleaseStartup() { debug.FreeOSMemory() }
