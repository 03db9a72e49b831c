//go:build unix

package instance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// again is the interval of attempts to lock a file.
const again = 20 * time.Millisecond

// Locked reports whether a process of the instance runs.
func (i *Instance) Locked() bool {
	f, err := os.OpenFile(filepath.Join(i.dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK)
}

// Released waits until no process of the instance runs, or ctx ends.
func (i *Instance) Released(ctx context.Context) error {
	tick := time.NewTicker(again)
	defer tick.Stop()
	for i.Locked() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Become makes this process the instance's. The lock stays with the process when it executes another program.
func (i *Instance) Become() error {
	f, err := os.OpenFile(filepath.Join(i.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("instance %s: %w", i.Name, err)
	}
	if err := lock(f, 100); err != nil {
		return errors.Join(fmt.Errorf("instance %s runs already: %w", i.Name, err), f.Close())
	}
	// Another descriptor of the same file, which the next program inherits.
	if _, err := syscall.Dup(int(f.Fd())); err != nil {
		return fmt.Errorf("instance %s: %w", i.Name, err)
	}
	pid := []byte(strconv.Itoa(os.Getpid()) + "\n")
	if err := os.WriteFile(filepath.Join(i.dir, "pid"), pid, 0o600); err != nil {
		return fmt.Errorf("instance %s: %w", i.Name, err)
	}
	return nil
}

// Reserve keeps other commands from starting, stopping or removing the instance until release is called. It waits for
// a minute at most.
func (i *Instance) Reserve() (release func(), err error) {
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return nil, fmt.Errorf("instance %s: %w", i.Name, err)
	}
	f, err := os.OpenFile(filepath.Join(i.dir, "change"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("instance %s: %w", i.Name, err)
	}
	if err := lock(f, int(time.Minute/again)); err != nil {
		return nil, errors.Join(fmt.Errorf("another command is changing the instance %s: wait for it: %w", i.Name, err),
			f.Close())
	}
	return func() { f.Close() }, nil
}

// lock locks a file for this process alone. It tries as often as given: Locked holds the file for a moment.
func lock(f *os.File, attempts int) (err error) {
	for range attempts {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		time.Sleep(again)
	}
	return err
}
