package node

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// limit bounds every wait. It ends hung tests, and measures nothing.
const limit = 3 * time.Minute

// logDelay is the time to wait for the rest of an exited program's log, because its children may keep the pipe open.
const logDelay = 10 * time.Second

// cluster is a bowsprit with its own home directory, where its clients find it without flags.
type cluster struct {
	home  string
	flags []string
	port  string
	path  string // more folders for PATH, each followed by a colon
	cmd   *exec.Cmd
	log   *output
}

// startCluster starts "bowsprit serve" with the flags. It is stopped when t ends.
func startCluster(t *testing.T, flags ...string) *cluster {
	t.Helper()
	c := &cluster{home: t.TempDir(), flags: flags, port: freePort(t)}
	c.start(t)
	t.Cleanup(func() { c.stop(t) })
	return c
}

// start starts the server, or restarts it in the same place.
func (c *cluster) start(t *testing.T) {
	t.Helper()
	c.log = newOutput()
	c.cmd = exec.Command(filepath.Join(binaries, "bowsprit"), append([]string{"serve", "--secure-port=" + c.port},
		c.flags...)...)
	c.cmd.Env = c.env()
	c.cmd.Stderr = c.log
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(limit, func() { c.cmd.Process.Kill() })
	defer hung.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "Bowsprit is ready") {
			return
		}
	}
	c.cmd.Wait()
	t.Fatalf("bowsprit did not start: %s", c.log)
}

func (c *cluster) stop(t *testing.T) {
	t.Helper()
	if c.cmd.ProcessState != nil {
		return
	}
	end(t, c.cmd, c.log)
}

// env is the environment of the server and of its clients.
func (c *cluster) env() []string {
	return append(os.Environ(), "PATH="+binaries+":"+c.path+os.Getenv("PATH"), "HOME="+c.home, "XDG_DATA_HOME=",
		"CONTAINERD_ADDRESS="+filepath.Join(c.home, "containerd.sock"), "CONTAINERD_NAMESPACE=k8s.io",
		"KUBECONFIG="+c.kubeconfig())
}

// kubeconfig returns the path of the administrator's kubeconfig.
func (c *cluster) kubeconfig() string {
	return filepath.Join(c.home, ".local", "share", "bowsprit", "kubeconfig")
}

// config returns the configuration of the administrator's clients.
func (c *cluster) config(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// client returns a client of the administrator.
func (c *cluster) client(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// sh runs a line of shell in the home directory and returns what it prints on standard output.
func (c *cluster) sh(t *testing.T, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", line)
	cmd.Dir, cmd.Env = c.home, c.env()
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s%s", line, err, &out, &errors)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// try runs a line of shell in the home directory, and returns what it prints.
func (c *cluster) try(ctx context.Context, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", line)
	cmd.Dir, cmd.Env = c.home, c.env()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// component is a running program of Kubernetes.
type component struct {
	cmd *exec.Cmd
	log *output
}

// run starts a program in the home directory; it is stopped when t ends, unless it was killed before.
func (c *cluster) run(t *testing.T, program string, args ...string) *component {
	t.Helper()
	if !filepath.IsAbs(program) {
		program = filepath.Join(binaries, program)
	}
	p := &component{cmd: exec.Command(program, args...), log: newOutput()}
	p.cmd.Dir, p.cmd.Env = c.home, c.env()
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.WaitDelay = logDelay
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s: %s", filepath.Base(program), lastLines(p.log.String()))
		}
		if p.cmd.ProcessState == nil {
			end(t, p.cmd, nil) // the exit code of Kubernetes' programs does not matter
		}
	})
	return p
}

// lastLines returns the end of a log, with the reason of a program that exited by itself.
func lastLines(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// awaitLine waits until a program has printed a text.
func (c *cluster) awaitLine(t *testing.T, p *component, text string) {
	t.Helper()
	await(t, func(context.Context) string {
		if log := p.log.String(); !strings.Contains(log, text) {
			return fmt.Sprintf("%s has not printed %q: %s", p.cmd.Path, text, log)
		}
		return ""
	})
}

// kill ends the program as a power failure would.
func (p *component) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// end stops a process gracefully. If log is set, it checks the exit code.
func end(t *testing.T, cmd *exec.Cmd, log *output) {
	t.Helper()
	hung := time.AfterFunc(limit, func() { cmd.Process.Kill() })
	defer hung.Stop()
	cmd.Process.Signal(syscall.SIGTERM)
	err := cmd.Wait()
	if log != nil && (err != nil || strings.Contains(log.String(), "panic")) {
		t.Errorf("%s ended with %v: %s", cmd.Path, err, log)
	}
}

// output is the output of a process.
type output struct {
	mu struct {
		sync.Mutex
		bytes.Buffer
	}
}

func newOutput() *output { return new(output) }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.String()
}

// await waits until is returns an empty text, and otherwise fails the test with its last text.
func await(t *testing.T, is func(ctx context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit) // also called by cleanups
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		problem := is(ctx)
		if problem == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(problem)
		}
	}
}

// freePort returns a free port for programs that cannot choose one. It is below the range for outgoing connections on
// Linux (32768 and more), so that no connection takes it before the program starts.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(20000 + rand.IntN(12000))
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no free port between 20000 and 32000")
	return ""
}
