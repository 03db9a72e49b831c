//go:build !linux

package embedded

// diskFree is not implemented on this system.
func diskFree(string) (free int64, ok bool) { return 0, false }
