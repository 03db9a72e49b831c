//go:build !unix

package instance

import (
	"context"
	"errors"
)

var errUnsupported = errors.New("instances need a Unix system: use \"bowsprit serve\" instead")

// Locked reports false: no instance runs on this system.
func (i *Instance) Locked() bool { return false }

// Released returns nil.
func (i *Instance) Released(context.Context) error { return nil }

// Become fails.
func (i *Instance) Become() error { return errUnsupported }

// Reserve fails.
func (i *Instance) Reserve() (release func(), err error) { return nil, errUnsupported }
