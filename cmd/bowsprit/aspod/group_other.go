//go:build !unix

package aspod

import "syscall"

func ownGroup() *syscall.SysProcAttr { return nil }
