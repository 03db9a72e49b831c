//go:build unix

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/instance"
)

// stopLimit is the time that a server gets to stop.
const stopLimit = 30 * time.Second

// detach gives a process a session of its own, so that closing the terminal does not end it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// foreground makes this process the instance's server, with the environment.
func foreground(i *instance.Instance, env []string) error {
	if !i.Exists() {
		return fmt.Errorf("there is no instance %s: start it with \"bowsprit up %[1]s\"", i.Name)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := i.Become(); err != nil {
		return err
	}
	return syscall.Exec(self, append([]string{self}, serveArgs(i)...), env)
}

// stop ends the instance's process, by force if it does not stop within stopLimit.
func stop(ctx context.Context, i *instance.Instance) error {
	pid := i.PID()
	if pid == 0 {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("the instance %s, process %d: %w", i.Name, pid, err)
	}
	limited, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	if i.Released(limited) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("the instance %s, process %d: %w", i.Name, pid, err)
	}
	last, cancelLast := context.WithTimeout(ctx, stopLimit)
	defer cancelLast()
	return i.Released(last)
}
