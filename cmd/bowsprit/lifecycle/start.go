package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/instance"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/notify"
)

const (
	// ask is the interval at which a starting server is asked whether it is ready.
	ask = 25 * time.Millisecond
	// usualPort is the port of the default instance, if it is free.
	usualPort = 6443
)

// serveArgs returns the arguments of "bowsprit serve" for the instance.
func serveArgs(i *instance.Instance) []string {
	args := []string{"serve", "--secure-port=" + strconv.Itoa(i.Port)}
	if i.Ephemeral {
		args = append(args, "--ephemeral", "--write-kubeconfig="+kubeconfig(i))
	} else {
		args = append(args, "--data-dir="+i.DataDir)
	}
	return append(args, i.Flags...)
}

// kubeconfig is the file that the instance's server writes.
func kubeconfig(i *instance.Instance) string { return filepath.Join(i.DataDir, "kubeconfig") }

// url returns the address of the instance.
func url(i *instance.Instance) string {
	if config, err := connect.FromFile(kubeconfig(i)); err == nil {
		return connect.URL(config)
	}
	return "https://127.0.0.1:" + strconv.Itoa(i.Port)
}

// freePort returns a port for a new instance. Another program may take it before the server does; then the start fails
// with an error that names the port.
func freePort(name string) (int, error) {
	ports := []int{0}
	if name == instance.Default {
		ports = []int{usualPort, 0}
	}
	var failure error
	for _, port := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			failure = err
			continue
		}
		port = l.Addr().(*net.TCPAddr).Port
		return port, l.Close()
	}
	return 0, failure
}

// start starts the instance's process, and returns when the server is ready. If it does not become ready, start ends
// the process and returns the end of its log.
func start(ctx context.Context, i *instance.Instance, flags *upFlags) error {
	if err := os.MkdirAll(i.DataDir, 0o700); err != nil {
		return err
	}
	if i.Ephemeral { // the file of an earlier server
		if err := os.Remove(kubeconfig(i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := i.TurnLog(); err != nil {
		return err
	}
	logged, err := os.OpenFile(i.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer logged.Close()
	info, err := logged.Stat()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, flags.wait)
	defer cancel()
	p, err := launch(ctx, i, logged, environment(os.Environ(), flags.isSetting))
	if err != nil {
		return fmt.Errorf("the instance %s was not started: %w", i.Name, err)
	}
	if err := p.ready(ctx, i); err != nil {
		p.kill()
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("it was not ready within %s: give it longer with --wait", flags.wait)
		}
		return fmt.Errorf("the instance %s was not started: %w%s", i.Name, err, lastLines(i.Log(), info.Size()))
	}
	return nil
}

// launched is a process that becomes the instance's server.
type launched struct {
	ended <-chan error // its end; nil for a unit of systemd
	kill  func()
}

// launch starts the process, with the environment if systemd does not provide one.
func launch(ctx context.Context, i *instance.Instance, log *os.File, env []string) (*launched, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if !i.Ephemeral && userSystemd(ctx) {
		return launchUnit(ctx, i, self)
	}
	cmd := exec.Command(self, "up", i.Name, "--foreground")
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = log, log, env, "/"
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	over := make(chan struct{})
	go func() {
		ended <- cmd.Wait()
		close(over)
	}()
	return &launched{ended: ended, kill: func() {
		_ = cmd.Process.Kill() // it may have ended
		<-over
	}}, nil
}

// environment returns the variables for an instance: without settings, which its flags contain, and without the
// variables of a service manager. BOWSPRIT_DATA_DIR selects the default instance and stays.
func environment(all []string, isSetting func(variable string) bool) (out []string) {
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		if isSetting(name) && name != "BOWSPRIT_DATA_DIR" || name == "NOTIFY_SOCKET" ||
			strings.HasPrefix(name, "WATCHDOG_") {
			continue
		}
		out = append(out, v)
	}
	return out
}

// ready waits until the server is ready, or its process has ended.
func (p *launched) ready(ctx context.Context, i *instance.Instance) error {
	tick := time.NewTicker(ask)
	defer tick.Stop()
	for {
		if i.Locked() && isReady(ctx, i) {
			return nil
		}
		select {
		case err := <-p.ended:
			if err == nil {
				err = errors.New("exit status 0")
			}
			return fmt.Errorf("its process has ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// isReady reports whether the instance's server is ready.
func isReady(ctx context.Context, i *instance.Instance) bool {
	config, err := connect.FromFile(kubeconfig(i))
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return notify.Probe(config, "/readyz")(ctx) == nil
}

// lastLines returns the end of the text that a process has written to its log: its error, or else the last lines.
func lastLines(file string, from int64) string {
	const most = 4096
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	text := make([]byte, most)
	n, _ := f.ReadAt(text, max(from, info.Size()-most)) // an error is the end of the file
	lines := strings.Split(string(bytes.TrimSpace(text[:n])), "\n")
	if reason, failed := strings.CutPrefix(lines[len(lines)-1], "bowsprit: "); failed {
		return ": " + reason
	}
	if lines = lines[max(0, len(lines)-5):]; lines[0] == "" {
		return ""
	}
	return "; its log ends with: " + strings.Join(lines, " | ")
}

// absolute returns the absolute path of a file that exists.
func absolute(file string) (string, error) {
	if _, err := os.Stat(file); err != nil {
		return "", err
	}
	return filepath.Abs(file)
}
