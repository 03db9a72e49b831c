package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// callee is the kubeconfig by which the server calls another server.
const callee = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://HOST/"}}]
users: [{name: u, user: {}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`

// elsewhere are a webhook behind a URL, one behind a URL that the environment excepts, one behind a service, and an
// APIService.
const elsewhere = `
apiVersion: v1
kind: Service
metadata: {name: policy, namespace: policy-system}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: calls}
webhooks:
- name: url.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {url: "https://admission.example/validate"}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
- name: excepted.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {url: "https://EXCEPTED:PORT/validate"}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
- name: service.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {caBundle: CA, service: {namespace: policy-system, name: policy, port: PORT, path: /validate}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.policy.example.com}
spec:
  group: policy.example.com
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  caBundle: CA
  service: {namespace: policy-system, name: policy, port: PORT}
`

// TestOutgoingProxy checks the rule of docs/ways-in.md: under HTTPS_PROXY and NO_PROXY the server reaches the hosts of
// URLs through the proxy (unless NO_PROXY excepts them), and services never. The proxy refuses everything and records
// the targets. The environment belongs to the process, so this test does not run in parallel.
func TestOutgoingProxy(t *testing.T) {
	proxy, dir := startRelay(t, nil, nil), t.TempDir()
	excepted, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HTTPS_PROXY", "http://"+proxy.Addr().String())
	t.Setenv("NO_PROXY", excepted)
	flags := []string{
		"--ephemeral", "--authorization-mode=RBAC,Webhook", "--authorization-webhook-version=v1",
		"--audit-webhook-mode=blocking", "--audit-webhook-initial-backoff=1ms",
		"--oidc-issuer-url=https://oidc.example", "--oidc-client-id=me",
	}
	for name, flag := range map[string]string{
		"token": "authentication-token-webhook-config-file", "access": "authorization-webhook-config-file",
		"audit": "audit-webhook-config-file",
	} {
		file := filepath.Join(dir, name)
		write(t, file, strings.ReplaceAll(callee, "HOST", name+".example"))
		flags = append(flags, "--"+flag+"="+file)
	}
	policy := filepath.Join(dir, "policy")
	write(t, policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
	server := startServer(t, append(flags, "--audit-policy-file="+policy, withoutAccounts)...)
	awaitConnect := func(name string) { proxy.await(t, "CONNECT "+name+".example:443") }
	awaitConnect("oidc")

	config := rest.AnonymousClientConfig(server.config(t))
	config.BearerToken = "unknown"
	if got := status(t, config, "/api/v1/namespaces"); got != http.StatusUnauthorized {
		t.Errorf("a token that only the webhook may know: %d", got)
	}
	awaitConnect("token")
	config = server.config(t)
	config.Impersonate.UserName = "bob"
	if got := status(t, config, "/api/v1/namespaces"); got != http.StatusInternalServerError {
		t.Errorf("a user of whom only the webhook may know, which does not answer: %d", got)
	}
	awaitConnect("access")
	awaitConnect("audit")

	s := &session{server: server, dir: dir}
	s.hook = startHook(t, dir)
	write(t, filepath.Join(dir, "elsewhere.yaml"), strings.NewReplacer("EXCEPTED", excepted, "PORT", s.hook.port(),
		"CA", s.hook.ca).Replace(elsewhere))
	for _, line := range []string{
		"kubectl create namespace policy-system", "kubectl apply -f elsewhere.yaml",
		"kubectl create configmap allowed",
		"kubectl wait apiservice v1.policy.example.com --for=jsonpath={.status.conditions[0].reason}=FailedDiscoveryCheck",
	} {
		if out, err := s.command(t, line); err != nil {
			t.Errorf("%s: %v: %s", line, err, out)
		}
	}
	if out, err := s.command(t, "kubectl create configmap refused --from-literal=forbidden=yes"); err == nil {
		t.Errorf("the webhook behind a service was not asked: %s", out)
	}
	awaitConnect("admission")
	for _, target := range proxy.since(0) {
		if !strings.HasSuffix(target, ".example:443") {
			t.Errorf("the proxy was asked for %s", target)
		}
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// status returns the code of the answer to a GET.
func status(t *testing.T, config *rest.Config, path string) int {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(fmt.Sprint(config.Host, path))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
