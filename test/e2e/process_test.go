package e2e

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// startLimit bounds every start and every stop of a process. It ends hung tests and measures nothing.
const startLimit = 60 * time.Second

// process is a running bowsprit.
type process struct {
	cmd        *exec.Cmd
	kubeconfig string
	began      time.Time
	ready      time.Duration // from the start of the process to its announcement
	stderr     *bytes.Buffer // complete once the process has ended
}

// startServer starts "bowsprit serve" with the flags, on a free port, and waits until it reports that it is ready. The
// server stops when t ends, unless it was killed before.
func startServer(t *testing.T, flags ...string) *process {
	t.Helper()
	p := &process{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), stderr: new(bytes.Buffer)}
	args := append([]string{"serve", "--secure-port=0", "--write-kubeconfig=" + p.kubeconfig}, flags...)
	p.cmd = exec.Command(filepath.Join(binaries, "bowsprit"), args...)
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(t) })
	hung := time.AfterFunc(startLimit, func() { p.cmd.Process.Kill() })
	defer hung.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "Bowsprit is ready") {
			p.ready = time.Since(p.began)
			return p
		}
	}
	p.cmd.Wait()
	t.Fatalf("bowsprit did not start: %s", p.stderr)
	return nil
}

// stop ends the process in an orderly way and fails the test if that fails.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	hung := time.AfterFunc(startLimit, func() { p.cmd.Process.Kill() })
	defer hung.Stop()
	p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("bowsprit ended with %v: %s", err, p.stderr)
	}
	if bytes.Contains(p.stderr.Bytes(), []byte("panic")) {
		t.Errorf("bowsprit wrote of a panic: %s", p.stderr)
	}
}

// kill ends the process as a power failure would.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// config returns the administrator's client configuration.
func (p *process) config(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// bounded returns a context that ends with the test, or when the test must be hung.
func bounded(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// startProgram starts a foreign program. It is killed when t ends; if t has failed, its last words are shown.
func startProgram(t *testing.T, path string, flags ...string) *exec.Cmd {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(path, flags...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if output, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s said at last: %s", filepath.Base(path), tail(string(output), 4<<10))
		}
	})
	return cmd
}
