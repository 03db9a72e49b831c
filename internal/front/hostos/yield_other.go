//go:build !linux

package hostos

// YieldThread does nothing: no portable call exists, and servers run on Linux.
func YieldThread() {}
