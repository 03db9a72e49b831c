//go:build !unix

package files

// nonblock is zero on systems where pipes are not files.
const nonblock = 0
