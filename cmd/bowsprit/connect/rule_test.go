package connect

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/instance"
)

// cluster returns a cluster at a URL with an authority.
func cluster(server, authority string) *clientcmdapi.Cluster {
	return &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: []byte(authority)}
}

// write writes a kubeconfig with a context for each cluster. The first name is the current context.
func write(t *testing.T, file string, clusters map[string]*clientcmdapi.Cluster, current string) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "secret"}
	for name, c := range clusters {
		config.Clusters[name] = c
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "u", Namespace: "of-" + name}
	}
	config.CurrentContext = current
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
}

// ownURL is the local server of the tests. It does not run: port 1 has no listener.
const (
	ownURL, otherURL = "https://127.0.0.1:1", "https://192.0.2.1:6443"
	ownCA, otherCA   = "own authority", "another authority"
)

// A machine has a local server, ~/.kube/config with the context production, and files with other contexts.
func machine(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
	t.Setenv("BOWSPRIT_DATA_DIR", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1") // as in a pod
	t.Setenv("KUBERNETES_SERVICE_PORT", "6443")
	standard := clientcmd.RecommendedHomeFile
	clientcmd.RecommendedHomeFile = filepath.Join(home, ".kube", "config")
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = standard })
	one := func(name string, c *clientcmdapi.Cluster) map[string]*clientcmdapi.Cluster {
		return map[string]*clientcmdapi.Cluster{name: c}
	}
	write(t, filepath.Join(home, "data", "bowsprit", "kubeconfig"), one("bowsprit", cluster(ownURL, ownCA)), "bowsprit")
	write(t, filepath.Join(home, "second", "kubeconfig"), one("bowsprit", cluster(otherURL, "second")), "bowsprit")
	write(t, clientcmd.RecommendedHomeFile, one("production", cluster(otherURL, otherCA)), "production")
	write(t, filepath.Join(home, "mine"), one("mine", cluster(ownURL, ownCA)), "mine")
	write(t, filepath.Join(home, "restored"), one("restored", cluster(otherURL, ownCA)), "restored")
	write(t, filepath.Join(home, "forwarded"), one("forwarded", cluster(ownURL, otherCA)), "forwarded")
	write(t, filepath.Join(home, "idle"), one("idle", cluster(otherURL, otherCA)), "")
	write(t, filepath.Join(home, "empty"), nil, "")
	if err := os.WriteFile(filepath.Join(home, "broken"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

// TestRule has the rule choose, for a write without a terminal and for a read.
func TestRule(t *testing.T) {
	home := machine(t)
	own := ownURL + " (local, data directory " + home + "/data/bowsprit)"
	const production = otherURL + " (context production)"
	for _, test := range []struct {
		name, environment, flags string // HOME stands for the home directory
		read, write              string // the server, or after "! " a part of the error; write "" is the same as read
	}{
		{"nothing", "", "", own, ""},
		{"file", "", "--kubeconfig=HOME/.kube/config", production, ""},
		{"context", "", "--context=production", production, ""},
		{"directory", "", "--data-dir=HOME/second", otherURL + " (local, data directory " + home + "/second)", ""},
		{"directory beside KUBECONFIG", "HOME/.kube/config", "--data-dir=HOME/data/bowsprit", own, ""},
		{"file beside KUBECONFIG", "HOME/mine", "--kubeconfig=HOME/.kube/config", production, ""},
		{"KUBECONFIG", "HOME/.kube/config", "", production, "! Add --context=production to change that server"},
		{"local data directory by KUBECONFIG", "HOME/data/bowsprit/kubeconfig", "",
			ownURL + " (context bowsprit; local, data directory " + home + "/data/bowsprit)", ""},
		{"another data directory by KUBECONFIG", "HOME/second/kubeconfig", "", otherURL + " (context bowsprit)",
			"! nothing was changed"},
		{"copy of the local kubeconfig", "HOME/mine", "",
			ownURL + " (context mine; local, data directory " + home + "/data/bowsprit)", ""},
		{"same authority elsewhere", "HOME/restored", "", otherURL + " (context restored)", "! nothing was changed"},
		{"another server on the local URL", "HOME/forwarded", "", ownURL + " (context forwarded)",
			"! nothing was changed"},
		{"first of several files", "HOME/.kube/config:HOME/mine", "", production, "! nothing was changed"},
		{"first of several files is local", "HOME/mine:HOME/.kube/config", "",
			ownURL + " (context mine; local, data directory " + home + "/data/bowsprit)", ""},
		{"context of several files", "HOME/mine:HOME/.kube/config", "--context=production", production, ""},
		{"several files, the first missing", "HOME/gone:HOME/.kube/config", "", production, "! nothing was changed"},
		{"no file of KUBECONFIG", "HOME/gone", "", "! selects no server: it is missing or has no context; unset KUBECONFIG", ""},
		{"KUBECONFIG without contexts", "HOME/empty", "", "! selects no server", ""},
		{"KUBECONFIG without a current context", "HOME/idle", "", "! no current context: choose one with --context; there are idle", ""},
		{"KUBECONFIG that is none", "HOME/broken", "", "! KUBECONFIG (" + home + "/broken)", ""},
		{"KUBECONFIG that is a directory", "HOME", "", "! is a directory", ""},
		{"missing file", "", "--kubeconfig=HOME/gone", "! no such file", ""},
		{"file without contexts", "", "--kubeconfig=HOME/empty", "! selects no server", ""},
		{"file without a current context", "", "--kubeconfig=HOME/idle", "! no current context", ""},
		{"context of a file", "", "--kubeconfig=HOME/idle --context=idle", otherURL + " (context idle)", ""},
		{"missing context", "", "--context=prod", `! has no context "prod": there are production`, ""},
		{"missing context beside KUBECONFIG", "HOME/mine", "--context=prod", `! has no context "prod": there are mine`, ""},
		{"directory and context", "", "--data-dir=HOME/second --context=production",
			"! --context and --data-dir both name a server", ""},
		{"directory and file", "", "--data-dir=HOME/second --kubeconfig=HOME/mine",
			"! --kubeconfig and --data-dir both name a server", ""},
		{"empty file", "", "--kubeconfig=", "! --kubeconfig is empty", ""},
		{"empty context", "HOME/.kube/config", "--context=", "! --context is empty", ""},
		{"empty directory", "", "--data-dir=", "! --data-dir is empty", ""},
		{"directory without a server", "", "--data-dir=HOME/none",
			"! no server has written " + home + "/none/kubeconfig", ""},
	} {
		t.Setenv("KUBECONFIG", strings.ReplaceAll(test.environment, "HOME", home))
		arguments := strings.Fields(strings.ReplaceAll(test.flags, "HOME", home))
		if test.write == "" {
			test.write = test.read
		}
		for purpose, want := range map[string]string{"read": test.read, "write": test.write} {
			var flags Flags
			var notes bytes.Buffer
			cmd := &cobra.Command{}
			cmd.SetIn(strings.NewReader("yes\n")) // not a terminal
			cmd.SetErr(&notes)
			flags.Bind(cmd.Flags())
			if err := cmd.ParseFlags(arguments); err != nil {
				t.Fatal(err)
			}
			s, err := flags.choose()
			if err == nil && purpose == "write" && s.foreignByEnvironment() {
				err = flags.confirm(cmd, s)
			}
			got := ""
			if err == nil {
				got = s.String()
			}
			if part, fails := strings.CutPrefix(want, "! "); fails {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%s, %s: %s %v, want an error with %q", test.name, purpose, got, err, part)
				}
			} else if err != nil || got != want {
				t.Errorf("%s, %s:\n got %s %v\nwant %s", test.name, purpose, got, err, want)
			}
		}
	}
}

// TestStopped checks that a command does not wait if the local server is not running, and mentions the unused context.
func TestStopped(t *testing.T) {
	machine(t)
	t.Setenv("KUBECONFIG", "")
	var flags Flags
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	flags.Bind(cmd.Flags())
	const want = `does not run: start it with "bowsprit serve", or name another server with --name, --data-dir, ` +
		`--kubeconfig or --context; kubectl's current context is used only if you add --context=production`
	if _, err := flags.Read(cmd); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	if _, err := flags.Write(cmd, ForPeople); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

// TestInstances checks the server of a command while instances run: the only one, or the one that --name selects.
func TestInstances(t *testing.T) {
	home := machine(t)
	t.Setenv("KUBECONFIG", "")
	begin := func(name, url string) {
		i, err := instance.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		i.DataDir = filepath.Join(home, name)
		write(t, filepath.Join(i.DataDir, "kubeconfig"), map[string]*clientcmdapi.Cluster{
			"bowsprit": cluster(url, ownCA)}, "bowsprit")
		if err := i.Store(); err != nil {
			t.Fatal(err)
		}
		if err := i.Become(); err != nil {
			t.Fatal(err)
		}
	}
	chosen := func(args ...string) string {
		var flags Flags
		cmd := &cobra.Command{}
		flags.Bind(cmd.Flags())
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		s, err := flags.choose()
		if err != nil {
			return err.Error()
		}
		return s.Config.Host + s.Flags()
	}
	check := func(want string, args ...string) {
		t.Helper()
		if got := chosen(args...); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
	check(ownURL)
	check("there is no instance one: start it with \"bowsprit up one\"; there are none", "--name=one")
	begin("one", "https://127.0.0.1:2")
	check("https://127.0.0.1:2 --name=one")
	begin("two", "https://127.0.0.1:3")
	check("several servers of this user run: add --name=NAME; there are one, two")
	check("https://127.0.0.1:3 --name=two", "--name=two")
	check(ownURL, "--name=default")
	check(ownURL, "--data-dir="+DefaultDataDir())
	check("--name and --data-dir both name a server", "--name=one", "--data-dir=x")
	check("--context and --name both name a server", "--name=one", "--context=x")
	check("--name is empty", "--name=")
	check("cannot be the name of an instance", "--name=../x")
}

// TestSameServer changes one field at a time.
func TestSameServer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte(ownCA), 0o600); err != nil {
		t.Fatal(err)
	}
	own := cluster(ownURL, ownCA)
	if !SameServer(own, cluster(ownURL, ownCA)) ||
		!SameServer(own, &clientcmdapi.Cluster{Server: ownURL, CertificateAuthority: file}) {
		t.Error("the same cluster is another server")
	}
	for i, change := range []func(*clientcmdapi.Cluster){
		func(c *clientcmdapi.Cluster) { c.Server = otherURL },
		func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = []byte(otherCA) },
		func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = nil },
		func(c *clientcmdapi.Cluster) { c.TLSServerName = "production" },
		func(c *clientcmdapi.Cluster) { c.ProxyURL = "socks5://127.0.0.1:1080" },
		func(c *clientcmdapi.Cluster) { c.InsecureSkipTLSVerify = true },
	} {
		other := cluster(ownURL, ownCA)
		change(other)
		if SameServer(own, other) || SameServer(other, own) {
			t.Errorf("change %d leads to the same server", i)
		}
	}
	if bare := (&clientcmdapi.Cluster{Server: ownURL}); SameServer(bare, bare) || SameServer(nil, nil) {
		t.Error("nothing proves that these are one server")
	}
}

// TestNext has the command lines that a command prints lead to the server that it used.
func TestNext(t *testing.T) {
	home := machine(t)
	second := filepath.Join(home, "second one")
	write(t, filepath.Join(second, "kubeconfig"),
		map[string]*clientcmdapi.Cluster{"b": cluster(otherURL, otherCA)}, "b")
	for _, test := range []struct {
		environment string
		args        []string
		kubectl     string
		flags       string
	}{
		{"", nil, "bowsprit kubectl --data-dir=" + home + "/data/bowsprit", ""},
		{"", []string{"--data-dir=" + second}, "bowsprit kubectl --data-dir='" + second + "'", " --data-dir='" + second + "'"},
		{"", []string{"--context=production"}, "bowsprit kubectl --context=production", " --context=production"},
		{home + "/mine", nil, "bowsprit kubectl --context=mine", " --context=mine"},
		{"", []string{"--kubeconfig=" + home + "/mine"}, "bowsprit kubectl --kubeconfig=" + home + "/mine",
			" --kubeconfig=" + home + "/mine"},
	} {
		t.Setenv("KUBECONFIG", test.environment)
		var flags Flags
		cmd := &cobra.Command{}
		flags.Bind(cmd.Flags())
		if err := cmd.ParseFlags(test.args); err != nil {
			t.Fatal(err)
		}
		s, err := flags.choose()
		if err != nil {
			t.Fatal(err)
		}
		if s.Kubectl() != test.kubectl || s.Flags() != test.flags {
			t.Errorf("%q: %q and %q", test.args, s.Kubectl(), s.Flags())
		}
	}
	if err := os.Remove(clientcmd.RecommendedHomeFile); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", "")
	s, err := local(DefaultDataDir())
	if err != nil || s.Kubectl() != "bowsprit kubectl" {
		t.Errorf("without a kubeconfig of the user's: %v %v", s, err)
	}
}

// TestNames checks that a name from a kubeconfig reaches the terminal as text, and a shell as one word.
func TestNames(t *testing.T) {
	t.Parallel()
	s := Server{Config: &rest.Config{Host: "https://me:secret@prod"}, Context: "a\x1b[2J\nb"}
	if got := s.String(); strings.ContainsAny(got, "\x1b\n") || strings.Contains(got, "secret") ||
		!strings.HasPrefix(got, "https://me:xxxxx@prod (context a") {
		t.Errorf("the server is called %q", got)
	}
	for word, want := range map[string]string{"": "''", "a/b=c": "a/b=c", "a b": "'a b'", "it's": `'it'\''s'`,
		"$(x)": "'$(x)'", "~": "'~'"} {
		if got := Quote(word); got != want {
			t.Errorf("%q is quoted as %s", word, got)
		}
	}
	many := clientcmdapi.NewConfig()
	for i := range 100 {
		many.Contexts[fmt.Sprint(i)] = &clientcmdapi.Context{}
	}
	if got := contextsOf(many); !strings.HasSuffix(got, " and 80 more") {
		t.Errorf("the contexts of a large kubeconfig: %s", got)
	}
}
