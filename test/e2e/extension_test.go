package e2e

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bowsprit/bowsprit/extension"
	"github.com/bowsprit/bowsprit/test/vessels"
)

// TestExtensionBehindKubeAPIServer runs the table of client tests against an extension API server behind a real
// kube-apiserver: the same table that stands in the package extension for kinds in process and behind Bowsprit.
func TestExtensionBehindKubeAPIServer(t *testing.T) {
	if reference == "" {
		t.Skip("E2E_KUBE_APISERVER is not set")
	}
	t.Parallel()
	var none *pair
	clients, proxies := none.sign(t, "clients"), none.sign(t, "proxies")
	front := proxies.sign(t, "front")
	kube := startReference(t, startCluster(t, 1, nil), withoutAccounts, "--client-ca-file="+clients.certFile,
		"--requestheader-client-ca-file="+proxies.certFile, "--requestheader-allowed-names=front",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-uid-headers=X-Remote-Uid", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+front.certFile, "--proxy-client-key-file="+front.keyFile)
	config := kube.config(t)
	server, err := extension.Server{
		Kinds: vessels.Kinds(), Front: config,
		Register: &extension.Registration{Namespace: "default", Service: "vessels", Address: "localhost"},
	}.New()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	vessels.WaitAvailable(t, config)
	vessels.Run(t, config)
}

// TestExtensionTutorial runs what docs/extension.md does.
func TestExtensionTutorial(t *testing.T) {
	t.Parallel()
	ship := filepath.Join(t.TempDir(), "ship")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", ship, "github.com/bowsprit/bowsprit/examples/ship")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server := startServer(t, "--ephemeral")
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, ship, "--kubeconfig="+server.kubeconfig, "--secure-port=0",
		"--bind-address=127.0.0.1", "--register-service=default/ship", "--register-address=localhost")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("ship ended with %v: %s", err, &log)
		}
	})
	kubectl(t, server, nil, "wait", "--for=create", "--timeout=60s", "apiservice/v1.sea.example.com")
	kubectl(t, server, nil, "wait", "--for=condition=Available", "--timeout=60s", "apiservice/v1.sea.example.com")
	const pequod = `{"apiVersion":"sea.example.com/v1","kind":"Ship","metadata":{"name":"pequod"},"spec":{"captain":"Ishmael"}}`
	if got := string(kubectl(t, server, []byte(pequod), "apply", "-f", "-")); got != "ship.sea.example.com/pequod created\n" {
		t.Errorf("apply: %s", got)
	}
	table := strings.Fields(string(kubectl(t, server, nil, "get", "ships")))
	if got := strings.Join(table[:8], " "); got != "NAME CAPTAIN MASTS PORT AGE pequod Ishmael 3" {
		t.Errorf("get: %s", got)
	}
	patch := exec.CommandContext(t.Context(), filepath.Join(binaries, "kubectl"), "--kubeconfig="+server.kubeconfig,
		"patch", "ship", "pequod", "--type=merge", "-p", `{"spec":{"masts":2}}`)
	const refused = "The Ship \"pequod\" is invalid: spec.masts: Forbidden: masts are not taken down\n"
	if out, err := patch.CombinedOutput(); err == nil || string(out) != refused {
		t.Errorf("patch: %v %s", err, out)
	}
}
