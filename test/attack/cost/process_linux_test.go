package cost

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The attacker and the neighbour have the same rights, and are not of system:masters. Their tokens are their names.
const (
	attacker  = "mallory"
	neighbour = "bob"
)

// process is a running server: the binary that users get.
type process struct {
	cmd    *exec.Cmd
	config *rest.Config // the administrator's
	log    *bytes.Buffer
}

// build returns the path of the binary. BOWSPRIT names an existing one.
func build(t *testing.T) string {
	t.Helper()
	if file := os.Getenv("BOWSPRIT"); file != "" {
		return file
	}
	file := filepath.Join(t.TempDir(), "bowsprit")
	cmd := exec.Command("go", "build", "-o", file, "github.com/bowsprit/bowsprit/cmd/bowsprit")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build bowsprit: %v\n%s", err, out)
	}
	return file
}

// start starts a server without persistent data, and waits until it is ready. The server stops when t ends.
func start(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	tokens, kubeconfig := filepath.Join(dir, "tokens.csv"), filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf("%[1]s,%[1]s,1\n%[2]s,%[2]s,2\n", attacker, neighbour)
	if err := os.WriteFile(tokens, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{log: new(bytes.Buffer)}
	p.cmd = exec.Command(build(t), "serve", "--ephemeral", "--secure-port=0", "--write-kubeconfig="+kubeconfig,
		"--token-auth-file="+tokens, "--feature-gates=CBORServingAndStorage=true", "--simulate=nodes=1")
	p.cmd.Stderr = p.log
	p.cmd.Env = append(os.Environ(), "HOME="+dir)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(t) })
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Bowsprit is ready") {
	}
	if p.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		t.Fatalf("the server did not start: %v\n%s", err, p.log)
	}
	p.config.QPS = -1
	return p
}

// stop ends the server, by force if a minute is not enough for it.
func (p *process) stop(t *testing.T) {
	p.cmd.Process.Signal(syscall.SIGTERM)
	force := time.AfterFunc(time.Minute, func() { p.cmd.Process.Kill() })
	defer force.Stop()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v: %s", err, tail(p.log.String()))
	}
	if strings.Contains(p.log.String(), "panic") {
		t.Errorf("the server logged a panic: %s", tail(p.log.String()))
	}
}

func tail(text string) string { return text[max(0, len(text)-4000):] }

// memory returns a figure of /proc/PID/status in bytes: VmRSS now, or VmHWM at the most since resetPeak.
func (p *process) memory(t *testing.T, field string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatalf("no %s in %s", field, status)
	return 0
}

// resetPeak sets VmHWM to VmRSS.
func (p *process) resetPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// cpu returns the CPU time of the process until now.
func (p *process) cpu(t *testing.T) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // the first is the third of the file
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// load returns the load of the machine: the figures of the last 1, 5 and 15 minutes.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}
