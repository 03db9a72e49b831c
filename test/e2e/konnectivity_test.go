package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// TestKonnectivityPage follows Kubernetes' page "Set up Konnectivity service", with its configuration, commands and
// manifests (testdata/konnectivity), unchanged except for folders and ports. The containers of the manifests run as
// processes: bowsprit konnectivity-server and konnectivity-agent with the page's arguments. At the end the API server
// calls a webhook that only the agent can reach.
func TestKonnectivityPage(t *testing.T) {
	t.Parallel()
	root, err := os.MkdirTemp("", "kp") // a socket's name has about 100 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	for _, dir := range []string{"konnectivity-server", "secrets/tokens", "secrets/kubernetes.io/serviceaccount"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	port := func() string {
		_, port, err := net.SplitHostPort(freeport.Address(t))
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	health := port()
	here := map[string]string{
		"/etc/kubernetes": root, "/var/run/secrets": filepath.Join(root, "secrets"), "35.225.206.7": "127.0.0.1",
		"=8132": "=" + port(), "=8133": "=0", "--health-port=8134": "--health-port=" + health,
		"--health-server-port=8134": "--health-server-port=0",
	}
	put := func(name string) string {
		return copyPage(t, filepath.Join("testdata", "konnectivity", name), filepath.Join(root, name), here)
	}
	server := startServer(t, "--data-dir="+filepath.Join(root, "data"),
		"--egress-selector-config-file="+put("egress-selector-configuration.yaml"))
	if err := os.Symlink(filepath.Join(root, "data", "pki"), filepath.Join(root, "pki")); err != nil {
		t.Fatal(err)
	}
	s := &session{server: server, dir: root, hook: startHook(t, root)}
	do := func(line string) {
		t.Helper()
		if out, err := s.command(t, line); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	do("sh -e " + put("kubeconfig.sh"))
	do("kubectl apply -f " + put("konnectivity-rbac.yaml"))
	do("kubectl apply -f " + put("konnectivity-server.yaml") + " -f " + put("konnectivity-agent.yaml"))
	// A kubelet would put these files into the agent's pod.
	do("kubectl create token konnectivity-agent -n kube-system --audience=system:konnectivity-server" +
		" > secrets/tokens/konnectivity-agent-token")
	do("cp pki/ca.crt secrets/kubernetes.io/serviceaccount/ca.crt")

	// The agent first, and so ended last: while there are connections it drains.
	startHalf(t, "konnectivity-agent", filepath.Join(root, "konnectivity-agent.yaml"))
	startHalf(t, "konnectivity-server", filepath.Join(root, "konnectivity-server.yaml"))
	ready := "http://127.0.0.1:" + health + "/readyz"
	for ctx := bounded(t, startLimit); ; {
		if resp, err := http.Get(ready); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		select {
		case <-ctx.Done():
			t.Fatal("no agent came")
		case <-time.After(50 * time.Millisecond):
		}
	}

	write(t, filepath.Join(root, "elsewhere.yaml"), strings.NewReplacer("HOOK_PORT", s.hook.port(), "HOOK_CA",
		s.hook.ca).Replace(guard))
	do("kubectl create namespace policy-system")
	do("kubectl apply -f elsewhere.yaml")
	do("kubectl create configmap allowed")
	if out, err := s.command(t, "kubectl create configmap refused --from-literal=forbidden=yes"); err == nil {
		t.Errorf("the webhook was not asked: %s", out)
	}
	resp, err := http.Get("http://127.0.0.1:" + health + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var metrics bytes.Buffer
	_, _ = metrics.ReadFrom(resp.Body)
	const count = "konnectivity_network_proxy_server_dial_duration_seconds_count "
	if text := metrics.String(); !strings.Contains(text, count) || strings.Contains(text, count+"0\n") {
		t.Error("the webhook was not reached through the Konnectivity server")
	}
}

// guard is a webhook behind a service, for the namespace default.
const guard = `
apiVersion: v1
kind: Service
metadata: {name: policy, namespace: policy-system}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard}
webhooks:
- name: service.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {caBundle: HOOK_CA, service: {namespace: policy-system, name: policy, port: HOOK_PORT, path: /validate}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
`

// copyPage copies a file with other names of folders and ports, and returns its path.
func copyPage(t *testing.T, from, to string, instead map[string]string) string {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, long := range []bool{true, false} { // --health-port=8134 before =8134
		for word, means := range instead {
			if strings.HasPrefix(word, "--") == long {
				text = strings.ReplaceAll(text, word, means)
			}
		}
	}
	write(t, to, text)
	return to
}

// startHalf runs a command with the arguments of the container in a manifest.
func startHalf(t *testing.T, command, manifest string) {
	t.Helper()
	type pod struct {
		Containers []struct{ Args []string }
	}
	var object struct {
		Spec struct {
			pod
			Template struct{ Spec pod }
		}
	}
	data, err := os.ReadFile(manifest)
	if err == nil {
		err = yaml.Unmarshal(data, &object)
	}
	if err != nil {
		t.Fatal(err)
	}
	containers := append(object.Spec.Containers, object.Spec.Template.Spec.Containers...)
	if len(containers) != 1 {
		t.Fatalf("%s has %d containers", manifest, len(containers))
	}
	cmd := exec.Command(filepath.Join(binaries, "bowsprit"), append([]string{command}, containers[0].Args...)...)
	var output bytes.Buffer
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(startLimit, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v: %s", command, err, &output)
		}
	})
}

// TestEgressSelections checks that the server uses the proxy of each network for its connections, and for no others.
// Two of the proxies refuse everything; etcd's proxy forwards.
func TestEgressSelections(t *testing.T) {
	t.Parallel()
	store := startCluster(t, 1, nil)
	etcd := strings.TrimPrefix(store.members[0].client, "http://")
	host, _, err := net.SplitHostPort(etcd)
	if err != nil {
		t.Fatal(err)
	}
	proxies := map[string]*relay{
		"cluster": startRelay(t, nil, nil), "controlplane": startRelay(t, nil, nil),
		"etcd": startRelay(t, nil, map[string]string{host: etcd}),
	}
	dir := t.TempDir()
	configuration := "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n"
	for name, proxy := range proxies {
		configuration += fmt.Sprintf("- name: %s\n  connection: {proxyProtocol: HTTPConnect, transport: {tcp: {url: %q}}}\n",
			name, "http://"+proxy.Addr().String())
	}
	selector, policy := filepath.Join(dir, "egress.yaml"), filepath.Join(dir, "policy")
	write(t, selector, configuration)
	write(t, policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
	flags := []string{
		"--ephemeral", "--authorization-mode=RBAC,Webhook", "--authorization-webhook-version=v1",
		"--audit-webhook-mode=blocking", "--audit-webhook-initial-backoff=1ms", "--audit-policy-file=" + policy,
		"--egress-selector-config-file=" + selector, "--etcd-servers=" + store.members[0].client, withoutAccounts,
	}
	for name, flag := range map[string]string{
		"token": "authentication-token-webhook-config-file", "access": "authorization-webhook-config-file",
		"audit": "audit-webhook-config-file",
	} {
		file := filepath.Join(dir, name)
		write(t, file, strings.ReplaceAll(callee, "HOST", name+".example"))
		flags = append(flags, "--"+flag+"="+file)
	}
	server := startServer(t, flags...)
	proxies["etcd"].await(t, "CONNECT "+etcd)
	config := rest.AnonymousClientConfig(server.config(t))
	config.BearerToken = "unknown"
	status(t, config, "/api/v1/namespaces")
	config = server.config(t)
	config.Impersonate.UserName = "bob"
	status(t, config, "/api/v1/namespaces")

	s := &session{server: server, dir: dir, hook: startHook(t, dir)}
	write(t, filepath.Join(dir, "elsewhere.yaml"), strings.NewReplacer("EXCEPTED", "excepted.example", "PORT",
		s.hook.port(), "CA", s.hook.ca).Replace(elsewhere))
	for _, line := range []string{
		"kubectl create namespace policy-system", "kubectl apply -f elsewhere.yaml",
		"kubectl wait apiservice v1.policy.example.com --for=jsonpath={.status.conditions[0].reason}=FailedDiscoveryCheck",
	} {
		if out, err := s.command(t, line); err != nil {
			t.Errorf("%s: %v: %s", line, err, out)
		}
	}
	if out, err := s.command(t, "kubectl create configmap any"); err == nil {
		t.Errorf("a webhook behind a proxy that refuses everything was reached: %s", out)
	}
	for _, name := range []string{"token", "access", "audit", "admission"} {
		proxies["controlplane"].await(t, "CONNECT "+name+".example:443")
	}
	proxies["cluster"].await(t, "CONNECT localhost:"+s.hook.port())
	for name, proxy := range proxies {
		for _, target := range proxy.since(0) {
			if of := networkOf(target, etcd); of != name {
				t.Errorf("the proxy of %s was asked for %s, which is of %s", name, target, of)
			}
		}
	}
}

// networkOf returns the network that a target of TestEgressSelections is in.
func networkOf(target, etcd string) string {
	switch {
	case strings.Contains(target, ".example:"):
		return "controlplane"
	case strings.HasSuffix(target, " "+etcd):
		return "etcd"
	}
	return "cluster"
}
