//go:build unix

package files

import "syscall"

// nonblock opens a pipe without waiting for its writer, and no terminal as the own one.
const nonblock = syscall.O_NONBLOCK | syscall.O_NOCTTY
