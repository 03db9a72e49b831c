package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bowsprit/bowsprit/test/vessels"
)

// vesselKinds is the kinds.go of a project that serves the kinds of the table of client tests.
const vesselKinds = `package main

import (
	"github.com/bowsprit/bowsprit/extension"
	"github.com/bowsprit/bowsprit/test/vessels"
)

func kinds() []extension.Kind { return vessels.Kinds() }
`

// TestProject has "bowsprit extension init" write a project and runs it behind Bowsprit and, with E2E_KUBE_APISERVER,
// behind a real kube-apiserver: first with the kind that it comes with, then with the kinds of the table of client
// tests, which passes behind both.
func TestProject(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "vessels")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	do(t, "", filepath.Join(binaries, "bowsprit"), "extension", "init", "vessel", "--api="+vessels.Group+"/v1",
		"--replace="+root, "--dir="+dir)
	do(t, dir, "go", "mod", "tidy") // as in its README
	do(t, dir, "go", "build", "-o", "as-written", ".")
	if err := os.WriteFile(filepath.Join(dir, "kinds.go"), []byte(vesselKinds), 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, dir, "go", "mod", "tidy")
	do(t, dir, "go", "build", "-o", "vessels", ".")
	fronts := map[string]func(*testing.T) *process{
		"bowsprit": func(t *testing.T) *process { return startServer(t, "--ephemeral") },
	}
	if reference != "" {
		fronts["kube-apiserver"] = startFront
	}
	for name, start := range fronts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := start(t)
			stop := startProject(t, filepath.Join(dir, "as-written"), front)
			checkWritten(t, front, filepath.Join(dir, "manifests", "example.yaml"))
			stop()
			startProject(t, filepath.Join(dir, "vessels"), front)
			vessels.WaitAvailable(t, front.config(t))
			vessels.Run(t, front.config(t))
		})
	}
}

// startFront starts a kube-apiserver for other servers behind it.
func startFront(t *testing.T) *process {
	t.Helper()
	var none *pair
	clients, proxies := none.sign(t, "clients"), none.sign(t, "proxies")
	return startReference(t, startCluster(t, 1, nil),
		append(frontFlags(clients, proxies, proxies.sign(t, "front")), withoutAccounts)...)
}

// startProject starts the program of a project and waits until the server in front lists its API. The returned function
// stops it, or the end of t.
func startProject(t *testing.T, program string, front *process) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "--kubeconfig="+front.kubeconfig, "--secure-port=0",
		"--bind-address=127.0.0.1", "--register-service=default/vessels", "--register-address=localhost")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		cancel()
		if cmd.ProcessState != nil {
			return
		}
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("%s ended with %v: %s", filepath.Base(program), err, &log)
		}
	}
	t.Cleanup(stop)
	kubectl(t, front, nil, "wait", "--for=create", "--timeout=60s", "apiservice/v1."+vessels.Group)
	kubectl(t, front, nil, "wait", "--for=condition=Available", "--timeout=60s", "apiservice/v1."+vessels.Group)
	return stop
}

// checkWritten uses the kind that a project comes with as its README does.
func checkWritten(t *testing.T, front *process, example string) {
	t.Helper()
	kubectl(t, front, nil, "apply", "-f", example)
	table := strings.Fields(string(kubectl(t, front, nil, "get", "vessels")))
	if got := strings.Join(table[:min(len(table), 8)], " "); got != "NAME OWNER SIZE PHASE AGE example me 10" {
		t.Errorf("get: %s", got)
	}
	smaller := exec.CommandContext(t.Context(), filepath.Join(binaries, "kubectl"),
		"--kubeconfig="+front.kubeconfig, "--cache-dir="+filepath.Join(t.TempDir(), "cache"),
		"patch", "vessel", "example", "--type=merge", "-p", `{"spec":{"size":5}}`)
	const refused = "The Vessel \"example\" is invalid: spec.size: Forbidden: it does not become smaller\n"
	if out, err := smaller.CombinedOutput(); err == nil || string(out) != refused {
		t.Errorf("patch: %v %s", err, out)
	}
}

// do runs a program in a directory.
func do(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
