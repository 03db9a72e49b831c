//go:build !linux

package chain

// yieldThread does nothing: no portable call exists, and servers run on Linux.
func yieldThread() {}
