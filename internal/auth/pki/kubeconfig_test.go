package pki

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfigIsReadByClientGo(t *testing.T) {
	t.Parallel()
	p := open(t, Config{}, start)
	config, err := clientcmd.RESTConfigFromKubeConfig(p.Kubeconfig("https://[::1]:6443"))
	if err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM := p.Admin()
	if config.Host != "https://[::1]:6443" || string(config.CAData) != string(p.ServerCA()) ||
		string(config.CertData) != string(certPEM) || string(config.KeyData) != string(keyPEM) {
		t.Errorf("read back %v", config)
	}
}

// other is a kubeconfig of the user's, with a path relative to it.
const other = `apiVersion: v1
kind: Config
clusters:
- name: prod
  cluster: {server: "https://prod.example", certificate-authority: ca.crt}
users:
- name: kubernetes-admin
  user: {token: secret}
contexts:
- name: prod
  context: {cluster: prod, user: kubernetes-admin, namespace: team}
`

func TestMerge(t *testing.T) {
	t.Parallel()
	p := open(t, Config{}, start)
	ours := p.Kubeconfig("https://127.0.0.1:6443")
	for name, test := range map[string]struct {
		before      string // "-" for no file
		use         bool
		wantCurrent string
		wantOthers  bool
		wantError   string
	}{
		"no file":       {before: "-", wantCurrent: "bowsprit"},
		"empty file":    {before: "", wantCurrent: "bowsprit"},
		"no current":    {before: other, wantCurrent: "bowsprit", wantOthers: true},
		"other current": {before: other + "current-context: prod\n", wantCurrent: "prod", wantOthers: true},
		"to be used": {
			before: other + "current-context: prod\n", use: true, wantCurrent: "bowsprit", wantOthers: true,
		},
		"no YAML":           {before: "\tnot: [a", wantError: "is not a kubeconfig and stays unchanged"},
		"text":              {before: "hello\n", wantError: "is not a kubeconfig and stays unchanged"},
		"an object of kube": {before: "apiVersion: v1\nkind: Pod\n", wantError: "is not a kubeconfig and stays unchanged"},
	} {
		file := filepath.Join(t.TempDir(), "sub", "config")
		if test.before != "-" {
			must(t, os.MkdirAll(filepath.Dir(file), 0o700))
			must(t, os.WriteFile(file, []byte(test.before), 0o600))
		}
		current, err := Merge(file, ours, test.use)
		if test.wantError != "" {
			content, _ := os.ReadFile(file)
			if err == nil || !strings.Contains(err.Error(), test.wantError) || string(content) != test.before {
				t.Errorf("%s: error %v, the file is now %q", name, err, content)
			}
			continue
		}
		if err != nil || current != test.wantCurrent {
			t.Errorf("%s: current context %q, error %v", name, current, err)
			continue
		}
		config, err := clientcmd.LoadFromFile(file)
		must(t, err)
		if config.CurrentContext != test.wantCurrent {
			t.Errorf("%s: current context in the file: %q", name, config.CurrentContext)
		}
		if c := config.Clusters["bowsprit"]; c == nil || c.Server != "https://127.0.0.1:6443" ||
			config.Contexts["bowsprit"].AuthInfo != "bowsprit" || len(config.AuthInfos["bowsprit"].ClientKeyData) == 0 {
			t.Errorf("%s: our entries are not whole: %v", name, config)
		}
		if test.wantOthers && (config.Clusters["prod"].CertificateAuthority != "ca.crt" ||
			config.AuthInfos["kubernetes-admin"].Token != "secret" || config.Contexts["prod"].Namespace != "team") {
			t.Errorf("%s: the user's entries have changed: %v", name, config)
		}
		if _, err := os.Stat(file + ".lock"); err == nil {
			t.Errorf("%s: the lock file is still there", name)
		}
	}
}

// A link stays a link, the namespace that the user has chosen stays, a renewed certificate replaces only our entries,
// and a file that another program is changing is left alone.
func TestMergeAgain(t *testing.T) {
	t.Parallel()
	p := open(t, Config{}, start)
	dir := t.TempDir()
	file, link := filepath.Join(dir, "config"), filepath.Join(dir, "link")
	must(t, os.WriteFile(file, []byte(other), 0o600))
	must(t, os.Symlink("config", link))
	must(t, p.MergeKubeconfig(link, "https://127.0.0.1:6443"))
	config, err := clientcmd.LoadFromFile(file)
	must(t, err)
	config.Contexts["bowsprit"].Namespace = "mine"
	must(t, clientcmd.WriteToFile(*config, file))
	if _, err := Merge(link, p.Kubeconfig("https://127.0.0.1:7443"), false); err != nil {
		t.Fatal(err)
	}
	if config, err = clientcmd.LoadFromFile(file); err != nil || config.Clusters["prod"] == nil ||
		config.Contexts["bowsprit"].Namespace != "mine" ||
		config.Clusters["bowsprit"].Server != "https://127.0.0.1:7443" {
		t.Errorf("after the second time: %v %v", config, err)
	}
	if target, err := os.Readlink(link); target != "config" {
		t.Errorf("the link is now %q, %v", target, err)
	}
	must(t, os.WriteFile(file+".lock", nil, 0o600))
	before, _ := os.ReadFile(file)
	_, err = Merge(link, p.Kubeconfig("https://127.0.0.1:8443"), false)
	after, _ := os.ReadFile(file)
	if err == nil || !strings.Contains(err.Error(), "is being changed by another program") ||
		string(after) != string(before) {
		t.Errorf("while it is locked: %v", err)
	}
}
