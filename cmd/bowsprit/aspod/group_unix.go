//go:build unix

package aspod

import "syscall"

// ownGroup returns how to start a process in a process group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
