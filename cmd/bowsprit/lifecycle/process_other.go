//go:build !unix

package lifecycle

import (
	"context"
	"errors"
	"os/exec"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/instance"
)

func detach(*exec.Cmd) {}

func foreground(*instance.Instance, []string) error {
	return errors.New("instances need a Unix system: use \"bowsprit serve\" instead")
}

func stop(context.Context, *instance.Instance) error { return nil }
