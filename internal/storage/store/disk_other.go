//go:build !linux

package store

// diskFree is not implemented on this system.
func diskFree(string) (free int64, ok bool) { return 0, false }
