//go:build !linux

package aspod

import (
	"errors"
	"syscall"
)

// Other systems than Linux have no mount namespaces.

func isolated(bool) *syscall.SysProcAttr { return nil }

func dependent() *syscall.SysProcAttr { return nil }

func follower() *syscall.SysProcAttr { return nil }

func dropRights() error { return nil }

func lockThread() {}

func enter() (root, error) { return root{}, errors.New("mount namespaces need Linux") }

func inMemory(string) bool { return false }

const memoryDir = ""
