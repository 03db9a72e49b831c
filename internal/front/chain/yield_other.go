//go:build !linux

package chain

// yieldThread does nothing: there is no portable call, and servers run on Linux.
func yieldThread() {}
