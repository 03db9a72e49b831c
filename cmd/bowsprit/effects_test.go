package main

import (
	"bufio"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/testserver"
)

// invocation is a command line that does the work of a command, in a directory that landscape.work makes.
type invocation struct {
	path string // of the command, as a key of effects
	args string
	// until is the beginning of a line of output that ends a long-running command. "*" ends it at once.
	until string
	// fails marks a command line that fails because the server has no objects with the names it gives, or with a
	// negative answer.
	fails bool
	// effect is the effect of the flags, if it differs from the command's.
	effect effect
}

// invocations has at least one command line of each command. A later one may need the objects of an earlier one.
var invocations = []invocation{
	{path: "serve", args: "--ephemeral --secure-port=0", until: "Stop with"},
	{path: "kube-apiserver", args: "--etcd-servers=http://127.0.0.1:1", until: "*"},
	{path: "etcd", args: "--version"},
	{path: "konnectivity-server", fails: true},
	{path: "konnectivity-agent", args: "--proxy-server-host=127.0.0.1 --proxy-server-port=1", until: "*", fails: true},
	{path: "backup", args: "backup.tar"},
	{path: "snapshot save", args: "snapshot.db"},
	{path: "restore", args: "backup.tar --data-dir=restored"},
	{path: "snapshot restore", args: "snapshot.db --data-dir=restored2"},
	{path: "doctor"},
	{path: "kubeconfig"},
	{path: "kubeconfig", args: "--user=alice"},
	{path: "uninstall"},
	{path: "config check"},
	{path: "config print"},
	{path: "convert init", args: "rules.yaml rules.yaml"},
	{path: "convert serve", args: "rules.yaml --address=127.0.0.1:0", until: "Stop with"},
	{path: "convert test", args: "rules.yaml --objects=5"},
	{path: "crd lint", args: "state"},
	{path: "crd export", args: "--ordinary state"},
	{path: "crd diff", args: "--live state"},
	{path: "crd diff", args: "state state", effect: none},
	{path: "docs", args: "--write=pages"},
	{path: "envtest", args: "assets"},
	{path: "extension init", args: "ship --api=sea.example.com/v1"},
	{path: "manual", args: "manual"},
	{path: "token generate"},
	{path: "up", args: "new --foreground", fails: true}, // the server of an earlier "up"
	{path: "list"},
	{path: "logs", fails: true},
	{path: "down", fails: true},
	{path: "version"},
	{path: "demo"},
	{path: "demo", args: "--print", effect: none},
	{path: "import", args: "state"},
	{path: "import", args: "state --dry-run", effect: reads},
	{path: "import", args: "state --set=state --prune"},
	{path: "user create", args: "alice --role=view"},
	{path: "user create", args: "bob"},
	{path: "user list"},
	{path: "user delete", args: "alice"},
	{path: "token create", args: "abcdef.0123456789abcdef"},
	{path: "token list"},
	{path: "token delete", args: "abcdef"},
	{path: "extension install", args: "ship --api=sea.example.com/v1"},
	{path: "extension install", args: "ship --api=sea.example.com/v1 --dry-run", effect: none},
	{path: "export", args: "exported"},
	{path: "status"},
	{path: "why-denied", args: "get pods --as=alice", fails: true},
	{path: "why-denied", args: "-f state/map.yaml"},
	{path: "why-stuck", args: "namespace default"},
	{path: "mcp"},
	{path: "mcp", args: "--allow-apply", effect: writes},
	{path: "run", args: "--as-pod=deployment/absent true", fails: true},
	{path: "proxy", args: "--port=0", until: "Starting to serve"},
	{path: "demo", args: "--remove"},
	{path: "kubectl", args: "get namespaces"},
}

// TestEveryCommandHasAnEffect finds commands without an entry in effects, and without a command line here.
func TestEveryCommandHasAnEffect(t *testing.T) {
	t.Parallel()
	root := rootCommand()
	found := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := pathBelow(root, cmd)
		if path == "help" || path == "completion" { // cobra's own, which print
			return
		}
		if cmd.HasSubCommands() {
			for _, below := range cmd.Commands() {
				walk(below)
			}
			return
		}
		found[path] = true
		if effects[path] == 0 {
			t.Errorf("%q has no entry in effects", path)
		}
		if !slices.ContainsFunc(invocations, func(i invocation) bool { return i.path == path }) {
			t.Errorf("no command line of %q", path)
		}
		if rule := rules[effects[path]]; !strings.Contains(cmd.Long, rule) {
			t.Errorf("the help of %q does not have its rule", path)
		}
	}
	walk(root)
	for path := range maps.Keys(effects) {
		if !found[path] {
			t.Errorf("there is no command %q", path)
		}
	}
	if !strings.Contains(root.Long, connect.Rule) {
		t.Error("the help of bowsprit does not have the rule")
	}
}

// landscape is a machine with a local server and a kubeconfig of another one, production.
type landscape struct {
	local, production string // URLs
	kubeconfig        string // has the context production
	dataDir           string // of the local server

	mu struct {
		sync.Mutex
		reached []string // requests and connections to production
	}
}

// newLandscape starts both servers. The other one is behind a front that counts.
func newLandscape(t *testing.T) *landscape {
	t.Helper()
	l := &landscape{dataDir: filepath.Join(t.TempDir(), "bowsprit")}
	l.local = testserver.Start(t, func(c *bowsprit.Config) { c.Ephemeral, c.DataDir = false, l.dataDir }).URL()
	production := testserver.Start(t)
	behind, err := url.Parse(production.URL())
	if err != nil {
		t.Fatal(err)
	}
	relay := httputil.NewSingleHostReverseProxy(behind)
	if relay.Transport, err = rest.TransportFor(production.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	l.front(t, relay)
	return l
}

// front starts the front of production, and writes its kubeconfig.
func (l *landscape) front(t *testing.T, production http.Handler) {
	t.Helper()
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.note(r.Method + " " + r.URL.RequestURI())
		production.ServeHTTP(w, r)
	}))
	front.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		l.note("connection")
		return nil, nil
	}}
	front.StartTLS()
	t.Cleanup(front.Close)
	l.production = front.URL
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: front.URL, CertificateAuthorityData: pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "secret"}
	config.Contexts["production"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "production"
	l.kubeconfig = filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, l.kubeconfig); err != nil {
		t.Fatal(err)
	}
}

func (l *landscape) note(request string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.reached = append(l.mu.reached, request)
}

// take returns the requests and connections to production since the last call.
func (l *landscape) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.mu.reached = nil }()
	return l.mu.reached
}

// user is a user of the landscape: HOME, and the working directory. Commands run there without a terminal.
type user struct {
	home, work string
	env        []string
}

// newUser makes a user, with production as kubectl's current context if they have contexts. xdg is the data home.
func (l *landscape) newUser(t *testing.T, contexts bool, xdg string, env ...string) *user {
	t.Helper()
	rules, err := os.ReadFile("conversion/testdata/good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	u := &user{home: t.TempDir(), work: t.TempDir(), env: append(env, "XDG_DATA_HOME="+xdg)}
	files := map[string]string{
		filepath.Join(u.work, "state", "map.yaml"): "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n",
		filepath.Join(u.work, "state", "crd.yaml"): strings.SplitN(demoManifests(t), "\n---\n", 2)[0],
		filepath.Join(u.work, "rules.yaml"):        string(rules),
	}
	if contexts {
		text, err := os.ReadFile(l.kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Join(u.home, ".kube", "config")] = string(text)
	}
	for file, text := range files {
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// demoManifests returns the output of "bowsprit demo --print", which begins with a definition.
func demoManifests(t *testing.T) string {
	t.Helper()
	out, err := command(t, "demo", "--print").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// run runs a command line to its end, or to the line that ends it, and returns all that it printed.
func (u *user) run(t *testing.T, i invocation, flags ...string) (out string, err error) {
	t.Helper()
	cmd := command(t, slices.Concat(strings.Fields(i.path), strings.Fields(i.args), flags)...)
	cmd.Dir, cmd.Env = u.work, append(cmd.Env, append([]string{"HOME=" + u.home, "TMPDIR=" + u.work}, u.env...)...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	stopped := false
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		fmt.Fprintln(&all, lines.Text())
		if !stopped && (i.until == "*" || i.until != "" && strings.HasPrefix(lines.Text(), i.until)) {
			stopped = true
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
		}
	}
	return all.String(), cmd.Wait()
}

// each runs all command lines, or only the lines with the given effects. It passes each result to check, with the
// requests that reached production meanwhile.
func (l *landscape) each(
	t *testing.T, u *user, check func(i invocation, out string, err error, reached []string) (problem string),
	only ...effect,
) {
	for _, i := range invocations {
		if i.effect == 0 {
			i.effect = effects[i.path]
		}
		if len(only) > 0 && !slices.Contains(only, i.effect) {
			continue
		}
		l.take()
		out, err := u.run(t, i)
		if problem := check(i, out, err, l.take()); problem != "" {
			t.Errorf("bowsprit %s %s: %s\nended with %v:\n%s", i.path, i.args, problem, err, out)
		}
	}
}

// TestEveryCommand runs every command on a machine with a local server and a kubeconfig for another server, production,
// without a terminal. No request reaches production without an explicit flag.
func TestEveryCommand(t *testing.T) {
	t.Parallel()
	l := newLandscape(t)
	xdg := filepath.Dir(l.dataDir)

	t.Run("current context", func(t *testing.T) {
		l.each(t, l.newUser(t, true, xdg), func(i invocation, out string, err error, reached []string) string {
			switch {
			case i.effect == asKubectl:
				if err != nil || len(reached) == 0 || !strings.Contains(out, l.production+" (context production)\n") {
					return "kubectl uses its current context and names the server"
				}
			case len(reached) > 0:
				return fmt.Sprintf("%q reached production", reached)
			case err != nil && !i.fails && i.until != "*":
				return "it failed"
			case (i.effect == writes || i.effect == writesLocal) &&
				!strings.Contains(out, "Server: "+l.local+" (local"):
				return "it does not name the local server"
			}
			return ""
		})
	})
	t.Run("KUBECONFIG", func(t *testing.T) {
		u := l.newUser(t, false, xdg, "KUBECONFIG="+l.kubeconfig)
		l.each(t, u, func(i invocation, out string, err error, reached []string) string {
			named := strings.Contains(out, l.production+" (context production)")
			switch i.effect {
			case reads, asKubectl:
				if err != nil && !i.fails || len(reached) == 0 || !named {
					return "KUBECONFIG selects the server of a read, which names it"
				}
				if changes := slices.DeleteFunc(reached, changesNothing); len(changes) > 0 {
					return fmt.Sprintf("%q changed production", changes)
				}
			case writes, writesLocal:
				if err == nil || len(reached) > 0 || !named || !strings.Contains(out, "nothing was changed") ||
					!strings.Contains(out, "--data-dir") ||
					i.effect == writes && !strings.Contains(out, "--context=production") {
					return fmt.Sprintf("a write fails, names the server and gives advice; %q reached it", reached)
				}
			default:
				if len(reached) > 0 || err != nil && !i.fails && i.until != "*" {
					return fmt.Sprintf("it failed, or %q reached production", reached)
				}
			}
			return ""
		})
	})
	t.Run("no local server", func(t *testing.T) {
		u := l.newUser(t, true, t.TempDir())
		l.each(t, u, func(i invocation, out string, err error, reached []string) string {
			if err == nil || len(reached) > 0 || !strings.Contains(out, "no server has written ") ||
				!strings.Contains(out, "bowsprit serve") || !strings.Contains(out, "--context=production") {
				return fmt.Sprintf("it reports the lack of a local server, and gives advice; %q reached production", reached)
			}
			return ""
		}, reads, writes, writesLocal)
	})
	t.Run("asked", func(t *testing.T) {
		u := l.newUser(t, true, xdg)
		for _, i := range invocations {
			if effects[i.path] != writes || i.effect != 0 {
				continue
			}
			failed := i.path == "user delete" || i.path == "run" // the user and the workload do not exist
			l.take()
			out, err := u.run(t, i, "--context=production")
			// A proxy is stopped before a client comes.
			if err != nil != failed || len(l.take()) == 0 && i.path != "proxy" ||
				!strings.Contains(out, "Server: "+l.production+" (context production)\n") {
				t.Errorf("bowsprit %s %s --context=production: %v\n%s", i.path, i.args, err, out)
			}
		}
	})
}

// changesNothing reports whether a request, as landscape records it, leaves a server unchanged.
func changesNothing(request string) bool {
	method, uri, _ := strings.Cut(request, " ")
	return method == "connection" || method == http.MethodGet || strings.Contains(uri, "dryRun=All") ||
		method == http.MethodPost && strings.Contains(uri, "accessreviews")
}
