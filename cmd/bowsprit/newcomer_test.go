package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// TestNoHome checks that without HOME the commands name no place for data. A directory for temporary files could be
// another user's.
func TestNoHome(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"serve", "--secure-port=0"}, {"kubeconfig"}, {"snapshot", "save", "x"},
		{"snapshot", "restore", "x"}, {"backup", "x"}, {"restore", "x"}} {
		cmd := command(t, args...)
		temp := t.TempDir()
		cmd.Env = append(cmd.Env, "HOME=", "XDG_DATA_HOME=", "TMPDIR="+temp)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "--data-dir") || !strings.Contains(string(out), "HOME") {
			t.Errorf("%q: %v %s", args, err, out)
		}
		if left, _ := filepath.Glob(filepath.Join(temp, "bowsprit*")); len(left) > 0 {
			t.Errorf("%q made %s", args, left)
		}
	}
}

// TestBusyPortLeavesNothing checks that a start that fails because of its port creates no files and logs the reason
// once.
func TestBusyPortLeavesNothing(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	_, port, _ := net.SplitHostPort(busy.Addr().String())
	dir := filepath.Join(t.TempDir(), "data")
	out, err := command(t, "serve", "--data-dir="+dir, "--secure-port="+port).CombinedOutput()
	if err == nil || strings.Count(string(out), "in use") != 1 {
		t.Errorf("%v: %s", err, out)
	}
	if connect.Exists(dir) {
		t.Error("the data directory was made")
	}
}

// TestKubectlVersion checks that kubectl reports its version in every build.
func TestKubectlVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "kubectl")
	if err := os.Symlink(os.Args[0], link); err != nil {
		t.Fatal(err)
	}
	linked := command(t, "version", "--client")
	linked.Path, linked.Args[0] = link, link
	for name, cmd := range map[string]*exec.Cmd{
		"built in": command(t, "kubectl", "version", "--client"), "drop-in": linked,
	} {
		out, err := cmd.Output() // a build with the race detector writes to stderr
		if err != nil || !strings.HasPrefix(string(out), "Client Version: v1.37.2\n") {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
	out, err := command(t, "--version").Output()
	version, _ := command(t, "version").Output()
	if err != nil || !strings.Contains(string(out), "API of Kubernetes v1.37.2") || !bytes.Equal(out, version) {
		t.Errorf("--version: %v %q, version: %q", err, out, version)
	}
	if help, _ := command(t, "help").Output(); !strings.Contains(string(help), "completion") {
		t.Errorf("completion is not listed:\n%s", help)
	}
}

// TestKubectlFindsServer checks that bowsprit kubectl finds the server of --data-dir, and prints how to start a server
// that does not run.
func TestKubectlFindsServer(t *testing.T) {
	t.Parallel()
	kubectl := func(home string, args ...string) (string, error) {
		cmd := command(t, append([]string{"kubectl"}, args...)...)
		cmd.Env = append(cmd.Env, "HOME="+home, "XDG_DATA_HOME="+home)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), "data")
	out, err := kubectl(home, "get", "namespaces")
	if err == nil || !strings.Contains(out, "Start one with: bowsprit serve\n") {
		t.Errorf("before any server: %v %s", err, out)
	}
	stop := start(t, "serve", "--secure-port=0", "--data-dir="+dir)
	for _, args := range [][]string{
		{"--data-dir", dir, "get", "namespaces", "-o", "name"},
		{"get", "--data-dir=" + dir, "namespaces", "-o", "name"},
	} {
		if out, err := kubectl(home, args...); err != nil || !strings.Contains(out, "namespace/kube-system\n") {
			t.Errorf("%q: %v %s", args, err, out)
		}
	}
	if out, err := kubectl(home, "--data-dir="+dir, "version"); err != nil ||
		!strings.Contains(out, "Server Version: v1.37.2+bowsprit") {
		t.Errorf("version: %v %s", err, out)
	}
	stop()
	out, err = kubectl(home, "--data-dir="+dir, "get", "namespaces")
	if err == nil || !strings.Contains(out, "Start it with: bowsprit serve --data-dir="+dir+"\n") {
		t.Errorf("after its end: %v %s", err, out)
	}
}

// TestTakeDataDir checks that arguments after two hyphens are left to the other program.
func TestTakeDataDir(t *testing.T) {
	t.Parallel()
	dir, rest, err := takeDataDir([]string{"exec", "--data-dir=a", "pod", "--", "run", "--data-dir=b"})
	if dir != "a" || strings.Join(rest, " ") != "exec pod -- run --data-dir=b" || err != nil {
		t.Errorf("%q %q %v", dir, rest, err)
	}
}

// TestKubeconfigIsMerged checks that the user's kubeconfig keeps its contents: --write-kubeconfig and bowsprit
// kubeconfig --merge only add to it.
func TestKubeconfigIsMerged(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	file := filepath.Join(home, ".kube", "config")
	const mine = "apiVersion: v1\nkind: Config\ncurrent-context: prod\ncontexts:\n- name: prod\n  context: {cluster: prod, user: me}\n"
	write := func() {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700),
			os.WriteFile(file, []byte(mine), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	merged := func(step, current string) {
		config, err := clientcmd.LoadFromFile(file)
		if err != nil || config.CurrentContext != current || config.Contexts["prod"] == nil ||
			config.Contexts["bowsprit"] == nil {
			t.Errorf("%s: %v %v", step, config, err)
		}
	}
	write()
	stop := start(t, "serve", "--secure-port=0", "--data-dir="+dir, "--write-kubeconfig="+file)
	merged("--write-kubeconfig", "prod")
	stop()
	for _, step := range []struct{ flags, current, want string }{
		{"--merge", "prod", "kubectl --context=bowsprit get namespaces"},
		{"--merge --use-context", "bowsprit", "is now the current context"},
	} {
		write()
		cmd := command(t, append([]string{"kubeconfig", "--data-dir=" + dir}, strings.Fields(step.flags)...)...)
		cmd.Env = append(cmd.Env, "HOME="+home)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), step.want) || !strings.Contains(string(out), file) {
			t.Errorf("%s: %v %s", step.flags, err, out)
		}
		merged(step.flags, step.current)
	}
	// The current context also stays if another file of KUBECONFIG has it.
	write()
	first := filepath.Join(home, "first")
	if err := os.WriteFile(first, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "kubeconfig", "--data-dir="+dir, "--merge")
	cmd.Env = append(cmd.Env, "KUBECONFIG="+first+string(filepath.ListSeparator)+file)
	out, err := cmd.CombinedOutput()
	added, loadErr := clientcmd.LoadFromFile(first)
	if err != nil || loadErr != nil || !strings.Contains(string(out), "is still prod") || added.CurrentContext != "" ||
		added.Contexts["bowsprit"] == nil {
		t.Errorf("into the first of two files: %v %v %s", err, loadErr, out)
	}
	// A context of the user's for another server is not led to this one.
	const theirs = "apiVersion: v1\nkind: Config\ncontexts:\n- name: prod\n  context: {cluster: bowsprit, user: bowsprit}\n" +
		"clusters:\n- name: bowsprit\n  cluster: {server: \"https://127.0.0.1:1\", certificate-authority-data: eA==}\n"
	if err := os.WriteFile(file, []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd = command(t, "kubeconfig", "--data-dir="+dir, "--merge")
	cmd.Env = append(cmd.Env, "HOME="+home)
	out, err = cmd.CombinedOutput()
	if after, _ := os.ReadFile(file); err == nil || string(after) != theirs ||
		!strings.Contains(string(out), `context "prod" belongs to another server, https://127.0.0.1:1: add this server to`) {
		t.Errorf("over another server: %v %s", err, out)
	}
	out, err = command(t, "kubeconfig", "--data-dir="+dir).Output()
	if config, loadErr := clientcmd.Load(out); err != nil || loadErr != nil || config.Clusters["bowsprit"] == nil {
		t.Errorf("printed: %v %v\n%s", err, loadErr, out)
	}
}

// TestMergeIntoItself checks that the server's own kubeconfig is never merged into itself.
func TestMergeIntoItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, link := filepath.Join(dir, "kubeconfig"), filepath.Join(t.TempDir(), "link")
	const text = "apiVersion: v1\nkind: Config\n"
	if err := errors.Join(os.WriteFile(own, []byte(text), 0o600), os.Symlink(own, link)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{own, link} {
		cmd := command(t, "kubeconfig", "--merge", "--data-dir="+dir)
		cmd.Env = append(cmd.Env, "KUBECONFIG="+name)
		out, err := cmd.CombinedOutput()
		const want = "nothing was changed: KUBECONFIG names the server's own file"
		if err == nil || !strings.Contains(string(out), want) ||
			read(t, own) != text {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
}

// TestAnnouncedPath checks that the path for another terminal does not depend on the directory of this one.
func TestAnnouncedPath(t *testing.T) {
	t.Parallel()
	u := &user{home: t.TempDir(), work: t.TempDir()}
	out, err := u.run(t, invocation{path: "serve", until: "Stop with",
		args: "--ephemeral --secure-port=0 --write-kubeconfig=kk"})
	if err != nil || !strings.Contains(out, "export KUBECONFIG="+filepath.Join(u.work, "kk")+"\n") {
		t.Errorf("%v %s", err, out)
	}
}
