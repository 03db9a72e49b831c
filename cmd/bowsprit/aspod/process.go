package aspod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// insideStage marks the process of this command that is in the mount namespace.
const insideStage = "inside"

// notIsolated is the exit code of a process that could not mount. It writes the reason to the file reasonFile.
const (
	notIsolated = 117
	reasonFile  = 3
)

// runInside runs this command again in a mount namespace, and returns its exit code. An error means that the namespace
// is not allowed; nothing has been done then.
func runInside() (code int, err error) {
	for _, asRoot := range []bool{true, false} {
		attributes := isolated(asRoot)
		if attributes == nil {
			return 0, errors.New("this system has none")
		}
		if asRoot && os.Geteuid() != 0 {
			continue
		}
		if code, err = again(attributes); err == nil {
			return code, nil
		}
	}
	return 0, err
}

// again starts this program with the same arguments, as the process inside.
func again(attributes *syscall.SysProcAttr) (code int, err error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	reader, writer, err := os.Pipe() // carries the reason of notIsolated
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	received := receive()
	defer received.stop()
	child := exec.Command(program, os.Args[1:]...)
	child.Env = append(os.Environ(), stageVariable+"="+insideStage)
	child.SysProcAttr = attributes
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.ExtraFiles = []*os.File{writer}
	lockThread()
	err = child.Start()
	writer.Close()
	if err != nil {
		return 0, err
	}
	// Ctrl-C reaches both processes, which are in one group.
	code, err = received.wait(child, syscall.SIGTERM, syscall.SIGHUP)
	if err == nil && code == notIsolated {
		reason, _ := io.ReadAll(io.LimitReader(reader, 4096))
		return 0, errors.New(strings.TrimSpace(string(reason)))
	}
	return code, err
}

// refuse ends the process inside with the reason why it cannot mount.
func refuse(reason error) {
	fmt.Fprintln(os.NewFile(reasonFile, "reason"), reason)
	os.Exit(notIsolated)
}

// signals are the signals that this process passes on.
type signals chan os.Signal

// receive begins to receive signals in place of their usual effect.
func receive() signals {
	s := make(signals, 8) // more than a user sends at once; os/signal drops the rest
	signal.Notify(s, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return s
}

func (s signals) stop() { signal.Stop(s) }

// wait waits for a process, passes the signals of only on to it, all if only is empty, and returns its exit code.
func (s signals) wait(cmd *exec.Cmd, only ...os.Signal) (code int, err error) {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case received := <-s:
			if len(only) == 0 || contains(only, received) {
				_ = cmd.Process.Signal(received) // it may have ended
			}
		case err := <-ended:
			return codeOf(err)
		}
	}
}

func contains(all []os.Signal, one os.Signal) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// codeOf returns the exit code of a process, 128 and the number of the signal that ended it.
func codeOf(err error) (int, error) {
	var ended *exec.ExitError
	if errors.Is(err, exec.ErrWaitDelay) {
		return 0, nil
	}
	if err == nil || !errors.As(err, &ended) {
		return 0, err
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return ended.ExitCode(), nil
}

// fillUnless is fill until a signal arrives.
func (f *files) fillUnless(ctx context.Context, received signals) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	filled := make(chan error, 1)
	go func() { filled <- f.fill(ctx) }()
	select {
	case err := <-filled:
		return err
	case s := <-received:
		cancel()
		<-filled
		return fmt.Errorf("stopped by a signal (%v) before the program was started", s)
	}
}

// program is a program to run.
type program struct {
	line, environment []string
	stdout, stderr    io.Writer
	started           func()
}

// run runs the program until it ends, and returns its exit code.
func (p *program) run(received signals) (int, error) {
	cmd := exec.Command(p.line[0], p.line[1:]...)
	cmd.Env = p.environment
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p.stdout, p.stderr, outputWait
	cmd.SysProcAttr = dependent()
	lockThread()
	if err := dropRights(); err != nil {
		return 0, fmt.Errorf("drop the right to mount: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	p.started()
	return received.wait(cmd)
}
