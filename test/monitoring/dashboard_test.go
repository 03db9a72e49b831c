package monitoring

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// limit ends tests that hang; it measures nothing.
const limit = 3 * time.Minute

// TestDashboard starts a server and a Prometheus that scrapes it with a service account's token, creates traffic, and
// waits until every expression of the dashboard has returned series. Every alert rule is evaluated without an error.
func TestDashboard(t *testing.T) {
	t.Parallel()
	path := prometheus(t, "prometheus")
	s := startServer(t)
	s.kubectl(t, "create", "serviceaccount", "prometheus", "--namespace=default")
	s.kubectl(t, "create", "clusterrolebinding", "prometheus", "--clusterrole=system:monitoring",
		"--serviceaccount=default:prometheus")
	token := s.kubectl(t, "create", "token", "prometheus", "--namespace=default")
	s.refuses(t, token)
	address := startPrometheus(t, path, s, token)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	watch := exec.CommandContext(ctx, s.program, "kubectl", "--kubeconfig="+s.kubeconfig, "get", "configmaps",
		"--watch")
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = watch.Wait() }()
	missing := expressions(t)
	for round := 0; len(missing) > 0; round++ {
		s.traffic(t, ctx, round)
		for where, expression := range missing {
			if seriesOf(t, ctx, address, expression) > 0 {
				delete(missing, where)
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("these return nothing: %q", missing)
		}
	}
	checkRules(t, ctx, address)
}

// expressions returns the queries of the dashboard, by panel, with variables replaced.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	parse(t, dashboard, &board)
	fill := strings.NewReplacer("$__rate_interval", "10s", "$instance", ".*")
	all := map[string]string{}
	for _, p := range board.Panels {
		for i, target := range p.Targets {
			all[fmt.Sprintf("%s %d", p.Title, i)] = fill.Replace(target.Expr)
		}
	}
	if len(all) < 10 {
		t.Fatalf("only %d expressions", len(all))
	}
	return all
}

// server is a running "bowsprit serve".
type server struct{ program, kubeconfig, address, authority string }

func startServer(t *testing.T) server {
	t.Helper()
	dir := t.TempDir()
	s := server{program: os.Getenv("BOWSPRIT"), kubeconfig: filepath.Join(dir, "kubeconfig")}
	s.address = freeport.Address(t)
	_, port, _ := strings.Cut(s.address, ":")
	data := filepath.Join(dir, "data")
	s.authority = filepath.Join(data, "pki", "ca.crt")
	run(t, "Bowsprit is ready", s.program, "serve", "--data-dir="+data, "--secure-port="+port,
		"--write-kubeconfig="+s.kubeconfig)
	return s
}

// run starts a program, waits for a word in its output, and stops it when the test ends.
func run(t *testing.T, ready, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-read
		_ = cmd.Wait()
	})
	output, up := &strings.Builder{}, make(chan bool)
	go func() {
		defer close(read)
		defer close(up)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if output != nil {
				fmt.Fprintln(output, lines.Text())
			}
			if output != nil && strings.Contains(lines.Text(), ready) {
				up <- true
				output = nil
			}
		}
	}()
	hung := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer hung.Stop()
	if !<-up {
		t.Fatalf("%s ended: %s", program, output)
	}
}

func (s server) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(s.program, append([]string{"kubectl", "--kubeconfig=" + s.kubeconfig}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// refuses checks that the token grants access to metrics only.
func (s server) refuses(t *testing.T, token string) {
	t.Helper()
	out, err := exec.Command(s.program, "kubectl", "--kubeconfig=/dev/null", "--server=https://"+s.address,
		"--certificate-authority="+s.authority, "--token="+token, "get", "configmaps").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Forbidden") {
		t.Errorf("the token of Prometheus reads configmaps: %v: %s", err, out)
	}
}

// traffic creates the traffic that the dashboard shows: writes, reads, an error, events for a watch.
func (s server) traffic(t *testing.T, ctx context.Context, round int) {
	t.Helper()
	for _, line := range []string{
		fmt.Sprintf("create configmap seen-%d", round), "get configmaps", "get configmap nothing-of-that-name",
		"get --raw /readyz",
	} {
		args := append([]string{"kubectl", "--kubeconfig=" + s.kubeconfig}, strings.Fields(line)...)
		_ = exec.CommandContext(ctx, s.program, args...).Run() // one of them fails, on purpose
	}
}

// startPrometheus starts a Prometheus that scrapes the server each second, configured as in docs/operations.md, and
// returns its address.
func startPrometheus(t *testing.T, path string, s server, token string) string {
	t.Helper()
	rules, err := filepath.Abs(alerts)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	scrape := func(job, metrics string) string {
		return fmt.Sprintf("- {job_name: %s, scheme: https, metrics_path: %s, static_configs: [{targets: ['%s']}],\n"+
			"   authorization: {credentials: '%s'}, tls_config: {ca_file: '%s'}}\n", job, metrics, s.address, token, s.authority)
	}
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: ['" + rules + "']\nscrape_configs:\n" +
		scrape("bowsprit", "/metrics") + scrape("bowsprit-health", "/metrics/slis")
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeport.Address(t)
	run(t, "Server is ready to receive web requests", path, "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	return "http://" + address
}

// ask returns Prometheus' answer to an API query.
func ask(t *testing.T, ctx context.Context, target string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v, %v", target, resp.Status, into, err)
	}
}

// seriesOf counts the series with a value that an expression returns now.
func seriesOf(t *testing.T, ctx context.Context, address, expression string) (n int) {
	t.Helper()
	var answer struct {
		Data struct{ Result []struct{ Value []any } }
	}
	ask(t, ctx, address+"/api/v1/query?query="+url.QueryEscape(expression), &answer)
	for _, r := range answer.Data.Result {
		if len(r.Value) == 2 && r.Value[1] != "NaN" {
			n++
		}
	}
	return n
}

// checkRules checks that all rules are loaded and were evaluated.
func checkRules(t *testing.T, ctx context.Context, address string) {
	t.Helper()
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	ask(t, ctx, address+"/api/v1/rules", &answer)
	loaded := map[string]bool{}
	for _, g := range answer.Data.Groups {
		for _, r := range g.Rules {
			loaded[r.Name] = true
			if r.Health != "ok" {
				t.Errorf("%s is %s: %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	for _, name := range alertNames(t) {
		if !loaded[name] {
			t.Errorf("%s is not loaded", name)
		}
	}
}
