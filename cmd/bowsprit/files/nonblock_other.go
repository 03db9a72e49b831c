//go:build !unix

package files

// nonblock is nothing where a pipe is no file.
const nonblock = 0
