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

// limit bounds all that is waited for. It is there to end a hung test, not to measure.
const limit = 3 * time.Minute

// logDelay is how long the log of a program that has ended is awaited: what it has started, and left, may keep the pipe
// of it open.
const logDelay = 10 * time.Second

// cluster is a bowsprit in a home directory of its own, where its clients find it without flags.
type cluster struct {
	home  string
	flags []string
	port  string
	path  string // more folders of programs, each with a colon after it
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

// start starts the server, and starts it again in the same place after a stop.
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

// kubeconfig returns the file of the administrator.
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
			end(t, p.cmd, nil) // how Kubernetes' programs end is not judged
		}
	})
	return p
}

// lastLines returns the end of a log: a program that has ended by itself says there why.
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

// end stops a process in an orderly way. If log is given, that it ends well is checked.
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

// output is what a process has printed.
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

// await waits until is returns an empty text, and fails the test with the last text if that never happens.
func await(t *testing.T, is func(ctx context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit) // used by cleanups, too
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		what := is(ctx)
		if what == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(what)
		}
	}
}

// freePort returns a port at which nothing listens, for programs that cannot choose one: below those that Linux gives
// to outgoing connections (32768 and more), or somebody has it when the program starts.
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
