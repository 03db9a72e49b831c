//go:build linux

package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

const podOperator = `
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: op, namespace: team}
---
apiVersion: v1
kind: Secret
metadata: {name: certs, namespace: team}
stringData: {tls.crt: certificate}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: team}
spec:
  replicas: 0
  selector: {matchLabels: {app: manager}}
  template:
    metadata: {labels: {app: manager}}
    spec:
      serviceAccountName: op
      containers:
      - name: manager
        image: manager
        args: [--namespace=$(POD_NAMESPACE)]
        ports: [{name: hooks, containerPort: 9443}]
        readinessProbe: {httpGet: {port: hooks, scheme: HTTPS, path: /readyz}, periodSeconds: 1, failureThreshold: 1}
        volumeMounts: [{name: certs, mountPath: /tmp/k8s-webhook-server/serving-certs}]
      volumes: [{name: certs, secret: {secretName: certs}}]
`

// podCaller starts a server with an operator, and returns the kubeconfig of a user with these rights in its namespace.
func podCaller(t *testing.T, rules ...rbacv1.PolicyRule) (kubeconfig string) {
	t.Helper()
	return newPodServer(t).user("alice", rules...)
}

// podServer is a server with an operator.
type podServer struct {
	*testing.T
	*testserver.Server
	client kubernetes.Interface
}

func newPodServer(t *testing.T, configure ...func(*bowsprit.Config)) *podServer {
	t.Helper()
	server := testserver.Start(t, configure...)
	file := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(file, []byte(podOperator), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := server.Install(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &podServer{t, server, client}
}

// user returns the kubeconfig of a user with these rights in the namespace of the operator.
func (s *podServer) user(name string, rules ...rbacv1.PolicyRule) (kubeconfig string) {
	s.Helper()
	meta := metav1.ObjectMeta{Name: name}
	if _, err := s.client.RbacV1().Roles("team").Create(s.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules},
		metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	if _, err := s.client.RbacV1().RoleBindings("team").Create(s.Context(), &rbacv1.RoleBinding{ObjectMeta: meta,
		Subjects: []rbacv1.Subject{{Kind: "User", Name: name, APIGroup: rbacv1.GroupName}},
		RoleRef:  rbacv1.RoleRef{Kind: "Role", Name: name, APIGroup: rbacv1.GroupName},
	}, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	user, err := s.User(name)
	if err != nil {
		s.Fatal(err)
	}
	return user.Kubeconfig()
}

func namedRule(verb, group, resource, name string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource},
		ResourceNames: []string{name}}
}

// These are all the rights that the operator needs.
var (
	mayReadWorkload = namedRule("get", "apps", "deployments", "manager")
	mayReadSecret   = namedRule("get", "", "secrets", "certs")
	mayGetToken     = namedRule("create", "", "serviceaccounts/token", "op")
)

// TestRun runs a program with each kind of paths, by a user with no other rights than the named ones.
func TestRun(t *testing.T) {
	t.Parallel()
	kubeconfig := podCaller(t, mayReadWorkload, mayReadSecret, mayGetToken)
	const program = `
set -e
echo "$@ $POD_NAMESPACE ${KUBECONFIG:+own}"
cat $BOWSPRIT_POD_ROOT/tmp/k8s-webhook-server/serving-certs/tls.crt; echo
cd $BOWSPRIT_POD_ROOT/var/run/secrets/kubernetes.io/serviceaccount
cat namespace; echo
head -n 1 ca.crt
cut -d. -f2 token | wc -l
stat -Lc %a token
exit 9`
	for _, mounts := range []string{"auto", "paths"} {
		t.Run(mounts, func(t *testing.T) {
			t.Parallel()
			cmd := command(t, "run", "--as-pod=deployment/manager", "--namespace=team", "--kubeconfig="+kubeconfig,
				"--mounts="+mounts, "--", "sh", "-c", program, "sh", "argument")
			var log strings.Builder
			cmd.Stderr = &log
			out, err := cmd.Output()
			var ended *exec.ExitError
			if !errors.As(err, &ended) || ended.ExitCode() != 9 {
				t.Fatalf("ended with %v, want code 9\n%s\n%s", err, out, log.String())
			}
			own := ""
			if mounts == "paths" || strings.Contains(log.String(), "no mount namespace") {
				own = "own"
			}
			want := "argument team " + own + "\ncertificate\nteam\n-----BEGIN CERTIFICATE-----\n1\n600\n"
			if string(out) != want {
				t.Errorf("printed\n%s\nwant\n%s\n%s", out, want, log.String())
			}
			for _, path := range []string{"/var/run/secrets/kubernetes.io", "/tmp/k8s-webhook-server/serving-certs"} {
				if _, err := os.Stat(path); err == nil {
					t.Errorf("other programs see %s", path)
				}
			}
		})
	}
}

// TestRunRights checks that each missing right of the caller ends the command before the program starts: nothing is
// read with other rights.
func TestRunRights(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		rules []rbacv1.PolicyRule
		want  string
	}{
		{"none", nil, `cannot get resource "deployments"`},
		{"workload", []rbacv1.PolicyRule{mayReadWorkload, mayGetToken}, `cannot get resource "secrets"`},
		{"no token", []rbacv1.PolicyRule{mayReadWorkload, mayReadSecret},
			`cannot create resource "serviceaccounts/token"`},
		{"other token", []rbacv1.PolicyRule{mayReadWorkload, mayReadSecret,
			namedRule("create", "", "serviceaccounts/token", "default")},
			`cannot create resource "serviceaccounts/token"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			out, err := command(t, "run", "--as-pod=deployment/manager", "--namespace=team",
				"--kubeconfig="+podCaller(t, test.rules...), "--mounts=paths", "--", "sh", "-c", "echo started").
				CombinedOutput()
			if err == nil || strings.Contains(string(out), "started") || !strings.Contains(string(out), test.want) {
				t.Errorf("%v: %s, want %q", err, out, test.want)
			}
		})
	}
}

// TestRunKilled checks that neither the program nor its files outlive a command that gets SIGKILL.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	kubeconfig := podCaller(t, mayReadWorkload, mayReadSecret, mayGetToken)
	for _, mounts := range []string{"auto", "paths"} {
		t.Run(mounts, func(t *testing.T) {
			t.Parallel()
			cmd := command(t, "run", "--as-pod=deployment/manager", "--namespace=team", "--kubeconfig="+kubeconfig,
				"--mounts="+mounts, "--", "sh", "-c", "echo root=$BOWSPRIT_POD_ROOT; exec sleep 1000")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			if !lines.Scan() {
				t.Fatal("the program printed nothing")
			}
			dir, _ := strings.CutPrefix(lines.Text(), "root=")
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() { // until the program, too, has closed its output
			}
			_ = cmd.Wait() // the kill
			retry := time.NewTicker(10 * time.Millisecond)
			defer retry.Stop()
			for range retry.C {
				if _, err := os.Stat(dir); dir == "" || err != nil {
					return // the guard has removed it
				}
			}
		})
	}
}

// TestRunAll runs two programs: the end of the first one, and a signal, end both.
func TestRunAll(t *testing.T) {
	t.Parallel()
	kubeconfig := podCaller(t, mayReadWorkload, mayReadSecret, mayGetToken)
	for name, test := range map[string]struct {
		first string
		code  int
	}{
		"end":    {"exit 7", 7},
		"signal": {"exec sleep 1000", 128 + int(syscall.SIGTERM)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, fifo := filepath.Join(dir, "Podfile"), filepath.Join(dir, "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			text := "one: deployment/manager -- sh -c 'echo \"$POD_NAMESPACE\"; read x <" + fifo + "; " + test.first + "'\n" +
				"second: deployment/manager -- sh -c 'echo here; echo x >" + fifo + "; exec sleep 1000'\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := command(t, "run", "--all="+file, "--namespace=team", "--kubeconfig="+kubeconfig, "--mounts=paths")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := map[string]bool{}
			for in := bufio.NewScanner(out); in.Scan(); {
				if lines[in.Text()] = true; len(lines) == 2 && name == "signal" {
					_ = cmd.Process.Signal(syscall.SIGTERM)
				}
			}
			var ended *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != test.code {
				t.Errorf("ended with %v, want code %d", err, test.code)
			}
			if len(lines) != 2 || !lines["one    | team"] || !lines["second | here"] {
				t.Errorf("printed %v", lines)
			}
		})
	}
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "takes a program"},
		{[]string{"--as-pod=deployment/a", "--"}, "takes a program"},
		{[]string{"--as-pod=pod/a", "--", "true"}, `"pod/a" is not a workload`},
		{[]string{"--", "true"}, `--as-pod "" is not a workload`},
		{[]string{"--as-pod=deployment/a", "--route=none", "--", "true"}, `--route "none" is unknown`},
		{[]string{"--all=nosuch"}, "nosuch: no such file"},
		{[]string{"--all=nosuch", "--", "true"}, "--all takes the programs"},
		{[]string{"--as-pod=deployment/a", "--mounts=none", "--", "true"}, `--mounts "none" is unknown`},
	} {
		out, err := command(t, append([]string{"run"}, test.args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), test.want) {
			t.Errorf("%q: %v %s, want %q", test.args, err, out, test.want)
		}
	}
}
