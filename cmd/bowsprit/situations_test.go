package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/manual"
	"github.com/bowsprit/bowsprit/testserver"
)

// badInput has wrong arguments of each command.
var badInput = map[string]string{
	"backup":            "nosuch/backup.tar",
	"config check":      "--config=nosuch.yaml",
	"config print":      "--secure-port=abc",
	"convert init":      "damaged.yaml damaged.yaml",
	"convert serve":     "damaged.yaml",
	"convert test":      "damaged.yaml",
	"crd diff":          "damaged.yaml damaged.yaml",
	"crd export":        "damaged.yaml",
	"crd lint":          "damaged.yaml",
	"demo":              "now",
	"docs":              "--address=nowhere",
	"doctor":            "--secure-port=70000 --data-dir=damaged.yaml",
	"down":              "nosuch",
	"envtest":           "damaged.yaml",
	"export":            "damaged.yaml",
	"extension init":    "Ship",
	"extension install": "ship --api=v1",
	"import":            "damaged.yaml",
	"kubeconfig":        "--user=alice --duration=-1h",
	"list":              "-o xml",
	"logs":              "nosuch",
	"mcp":               "--allow-delete",
	"proxy":             "--port=99999",
	"restore":           "nosuch.tar --data-dir=new",
	"run":               "--as-pod=pod/web true",
	"serve":             "--ephemeral --secure-port=70000",
	"snapshot restore":  "nosuch.db --data-dir=new",
	"snapshot save":     "nosuch/snapshot.db",
	"status":            "-o xml",
	"token create":      "short",
	"token delete":      "short",
	"token generate":    "now",
	"token list":        "-o xml",
	"uninstall":         "now",
	"up":                "Bad_Name",
	"user create":       "system:node:one",
	"user delete":       "nosuch",
	"user list":         "-o xml",
	"version":           "-o xml",
	"why-denied":        "get",
	"why-stuck":         "nosuch one",
}

// stage is a machine with a stopped local server, and kubeconfigs of other servers.
type stage struct {
	home, work, dataDir     string
	admin, powerless, wrong string // kubeconfigs
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{home: t.TempDir(), work: t.TempDir()}
	s.dataDir = filepath.Join(s.home, "bowsprit")
	server := testserver.Start(t)
	s.admin = server.Kubeconfig()
	other := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	admin, err := clientcmd.LoadFromFile(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	user := admin.AuthInfos[admin.Contexts[admin.CurrentContext].AuthInfo]
	authority := admin.Clusters[admin.Contexts[admin.CurrentContext].Cluster].CertificateAuthorityData
	write := func(file, url, as string) string {
		config := clientcmdapi.NewConfig()
		powers := user.DeepCopy()
		powers.Impersonate = as
		config.Clusters["c"] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: authority}
		config.AuthInfos["u"], config.CurrentContext = powers, "c"
		config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), clientcmd.WriteToFile(*config, file))
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	s.powerless = write(filepath.Join(s.home, "powerless"), server.URL(), "nobody")
	s.wrong = write(filepath.Join(s.home, "wrong"), other.URL, "")
	write(filepath.Join(s.dataDir, "kubeconfig"), "https://127.0.0.1:1", "")
	for name, text := range map[string]string{
		"damaged.yaml":   "kind: [\n",
		"state/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n",
		"state/crd.yaml": strings.SplitN(demoManifests(t), "\n---\n", 2)[0],
	} {
		file := filepath.Join(s.work, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// situation is a command line, and the name of its situation.
type situation struct{ name, line string }

// situationsOf returns the command lines of a command.
func (s *stage) situationsOf(t *testing.T, path string) (all []situation) {
	t.Helper()
	add := func(name string, words ...string) {
		all = append(all, situation{name, strings.Join(strings.Fields(strings.Join(words, " ")), " ")})
	}
	i := slices.IndexFunc(invocations, func(i invocation) bool { return i.path == path })
	args, e := invocations[i].args, effects[path]
	switch {
	case path == "snapshot restore" || path == "restore": // from a file
	case e == reads, e == writes:
		add("no server", path, args)
		add("wrong server", path, args, "--kubeconfig="+s.wrong)
		add("no rights", path, args, "--kubeconfig="+s.powerless)
	case path == "doctor", e == writesLocal:
		add("no server", path, args)
	case e == ofDataDir:
		add("no server", path, args, "--data-dir=nosuch")
	}
	bad, found := badInput[path]
	if !found {
		t.Errorf("badInput has no wrong arguments of %q", path)
	}
	if e == reads || e == writes {
		bad += " --kubeconfig=" + s.admin
	}
	add("bad input", path, bad)
	add("bad flag", path, "--nosuch")
	add("typo", path[:len(path)-2]+path[len(path)-1:], args)
	return all
}

// run runs a command line, and returns its output and exit code as on the page.
func (s *stage) run(t *testing.T, line string) string {
	t.Helper()
	u := &user{home: s.home, work: s.work, env: []string{"XDG_DATA_HOME=" + s.home}}
	out, err := u.run(t, invocation{args: line, until: "Starting to serve"})
	code := 0
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		code = ended.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	const most = 4
	lines := strings.Split(strings.TrimRight(s.stable(out), "\n"), "\n")
	if len(lines) > most {
		lines = append(lines[:most], "...")
	}
	return fmt.Sprintf("$ bowsprit %s\n%s\nexit code %d\n", s.stable(line), strings.Join(lines, "\n"), code)
}

// variable matches the parts of an output that differ from run to run, with their replacements.
var variable = []struct {
	of *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d{2,5}`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)?`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)? (KiB|MiB|GiB)\b`), "SIZE"},
	{regexp.MustCompile(`in \d+ days`), "in N days"},
	{regexp.MustCompile(`v1\.\d+\.\d+\+bowsprit\S*`), "VERSION"},
	{regexp.MustCompile(`(?m)^.*` + asCommand + `.*\n`), ""}, // of the test
}

func (s *stage) stable(text string) string {
	text = strings.NewReplacer(s.home, "DIR", s.work+"/", "", s.work, "DIR", filepath.Dir(s.admin), "DIR").Replace(text)
	for _, v := range variable {
		text = v.of.ReplaceAllString(text, v.by)
	}
	return text
}

// situations runs every command in every situation, and returns the section of the page.
func situations(t *testing.T) string {
	t.Helper()
	s := newStage(t)
	type result struct {
		situation
		path, text string
	}
	var all []*result
	root := rootCommand()
	for _, cmd := range manual.Tree(root) {
		path := pathBelow(root, cmd)
		if cmd.HasSubCommands() || outcomes[path].others != "" {
			continue
		}
		for _, one := range s.situationsOf(t, path) {
			all = append(all, &result{one, path, ""})
		}
	}
	var running sync.WaitGroup
	slots := make(chan struct{}, 4) // of processes at a time
	for _, r := range all {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r.text = s.run(t, r.line)
		})
	}
	running.Wait()
	var b strings.Builder
	last := ""
	for _, r := range all {
		if r.path != last {
			fmt.Fprintf(&b, "\n### `%s`\n", r.path)
			last = r.path
		}
		fmt.Fprintf(&b, "\n%s:\n\n```text\n%s```\n", strings.ToUpper(r.name[:1])+r.name[1:], r.text)
	}
	return b.String()
}
