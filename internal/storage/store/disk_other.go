//go:build !linux

package store

// diskFree is not known here.
func diskFree(string) (free int64, ok bool) { return 0, false }
