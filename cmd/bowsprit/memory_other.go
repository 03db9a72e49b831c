//go:build !linux

package main

import (
	"runtime/debug"
)

// releaseStartup gives back the memory that only starting needed.
func releaseStartup() { debug.FreeOSMemory() }
