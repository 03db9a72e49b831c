package uninstall

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, text string, parts ...string) string {
	t.Helper()
	name := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestUninstall(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	m := machine{root: root, dataDir: filepath.Join(root, "my data"), context: "bowsprit",
		program:    write(t, "program", root, "bin", "bowsprit"),
		kubeconfig: filepath.Join(root, "kube", "config")}
	pieces, err := m.look()
	if err != nil || len(pieces) != 1 || pieces[0].Remove != "rm "+m.program || pieces[0].Bytes != 7 {
		t.Errorf("nothing but the program: %+v, %v", pieces, err)
	}

	kept := write(t, "12345", m.dataDir, "etcd", "db")
	write(t, "12", root, "var/lib/bowsprit/pki/ca.crt")
	write(t, "", root, "usr/lib/systemd/system/bowsprit.service")
	write(t, "", root, "var/lib/dpkg/info/bowsprit.list")
	write(t, `{"contexts":[{"name":"bowsprit","context":{"cluster":"c","user":"u"}}]}`, m.kubeconfig)
	if pieces, err = m.look(); err != nil || len(pieces) != 4 {
		t.Fatalf("%+v, %v", pieces, err)
	}
	for i, want := range []string{
		"dpkg --purge bowsprit", "rm -r '" + m.dataDir + "'", "rm -r " + root + "/var/lib/bowsprit",
		"kubectl config delete-context bowsprit; kubectl config delete-cluster c; kubectl config delete-user u",
	} {
		if pieces[i].Remove != want {
			t.Errorf("%q, want %q", pieces[i].Remove, want)
		}
	}
	var text, raw bytes.Buffer
	if err := show(&text, "text", pieces); err != nil || !strings.Contains(text.String(), "Nothing was removed.") {
		t.Errorf("%v: %s", err, &text)
	}
	var again []piece
	if err := show(&raw, "json", pieces); err != nil || json.Unmarshal(raw.Bytes(), &again) != nil ||
		again[1].Bytes != 5 {
		t.Errorf("%v: %s", err, &raw)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error("it removed data:", err)
	}
}

// TestUninstallLeavesOthers checks that a directory with other files stays, and so does a context of the same name for
// another server.
func TestUninstallLeavesOthers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	m := machine{root: root, dataDir: filepath.Join(root, "home"), context: "bowsprit",
		program: write(t, "program", root, "bowsprit"), kubeconfig: filepath.Join(root, "config")}
	write(t, "", m.dataDir, "letters", "x")
	if pieces, err := m.look(); err != nil || len(pieces) != 1 {
		t.Errorf("a directory without a server's data: %+v, %v", pieces, err)
	}
	write(t, "", m.dataDir, "etcd", "db")
	write(t, kubeconfigOf("bowsprit", "https://127.0.0.1:6443"), m.dataDir, "kubeconfig")
	write(t, kubeconfigOf("bowsprit", "https://prod.example"), m.kubeconfig)
	pieces, err := m.look()
	if err != nil || len(pieces) != 2 ||
		pieces[1].Remove != "rm -r "+m.dataDir+"/etcd "+m.dataDir+"/kubeconfig" {
		t.Errorf("with files and a context of others: %+v, %v", pieces, err)
	}
	write(t, kubeconfigOf("mine", "https://127.0.0.1:6443"), m.kubeconfig)
	if pieces, err = m.look(); err != nil || len(pieces) != 3 ||
		!strings.Contains(pieces[2].Remove, "delete-context mine;") {
		t.Errorf("with a context of another name: %+v, %v", pieces, err)
	}
}

// kubeconfigOf returns a kubeconfig with one context.
func kubeconfigOf(context, server string) string {
	return `{"current-context":"` + context + `","contexts":[{"name":"` + context +
		`","context":{"cluster":"c","user":"u"}}],"clusters":[{"name":"c","cluster":{"server":"` + server +
		`","certificate-authority-data":"eA=="}}]}`
}

func TestBrokenKubeconfig(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	m := machine{root: root, kubeconfig: write(t, "{", root, "config")}
	if _, err := m.look(); err == nil {
		t.Error("a file that cannot be read says nothing about contexts")
	}
}
