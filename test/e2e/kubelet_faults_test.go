package e2e

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// probe sends a request to a container of the pod web, and waits for the response or the end of its context.
type probe func(ctx context.Context, container string) error

// probes returns the requests to kubelets: to follow a log, to run a command. They return the client's error.
func probes(client *kubernetes.Clientset, server *process) map[string]probe {
	all := map[string]probe{"logs": func(ctx context.Context, container string) error {
		log, err := client.CoreV1().Pods("default").GetLogs("web", &corev1.PodLogOptions{
			Container: container, Follow: true,
		}).Stream(ctx)
		if err != nil {
			return err
		}
		defer log.Close()
		_, err = io.Copy(io.Discard, log)
		return err
	}}
	// Run a process, because client-go does not end a request over SPDY without a response.
	for name, sockets := range map[string]string{"exec over WebSockets": "true", "exec over SPDY": "false"} {
		all[name] = func(ctx context.Context, container string) error {
			cmd := exec.CommandContext(ctx, filepath.Join(binaries, "kubectl"), "exec", "web", "-c", container,
				"--", "ls")
			cmd.Env = append(os.Environ(), "KUBECONFIG="+server.kubeconfig,
				"KUBECTL_REMOTE_COMMAND_WEBSOCKETS="+sockets)
			return cmd.Run()
		}
	}
	return all
}

// TestKubeletFaults checks that a kubelet that hangs, disconnects or sends garbage, at once or halfway, affects only
// its own clients, and that the server frees everything when they leave.
func TestKubeletFaults(t *testing.T) {
	t.Parallel()
	_, certificate := certify(t, "127.0.0.1")
	k := startKubelet(t, certificate)
	server := startServer(t, "--ephemeral", withoutAccounts, preferred)
	client := onNode(t, server, k.port(), "main", "hang", "stuck", "garbage", "halfway", "angry")
	for name, ask := range probes(client, server) {
		if err := ask(bounded(t, commandLimit), "angry"); err == nil {
			t.Errorf("%s of angry: no error", name)
		}
		before := goroutines(t, client)
		for _, container := range []string{"garbage", "halfway"} {
			err := ask(bounded(t, commandLimit), container)
			if none := container == "halfway" && name == "logs"; (err == nil) != none { // as with kube-apiserver
				t.Errorf("%s of %s: %v", name, container, err)
			}
		}
		for _, container := range []string{"hang", "stuck"} {
			ctx, leave := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- ask(ctx, container) }()
			k.awaitBusy(t, 1)
			if _, err := client.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
				t.Errorf("others cannot ask meanwhile: %v", err)
			}
			leave()
			if err := <-ended; err == nil {
				t.Errorf("%s of a kubelet that is %s: no error", name, container)
			}
			k.awaitIdle(t)
		}
		awaitGoroutines(t, client, before)
	}
}

// awaitGoroutines waits until the server has no more goroutines than before, except for kept connections to a kubelet.
func awaitGoroutines(t *testing.T, client *kubernetes.Clientset, before int) {
	t.Helper()
	ctx, tick := bounded(t, commandLimit), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for now := goroutines(t, client); now > before+5; now = goroutines(t, client) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d goroutines, were %d", now, before)
		}
	}
}

// TestNoKubelet checks listeners in the place of a kubelet that do not speak TLS, send nothing, or end each connection.
func TestNoKubelet(t *testing.T) {
	t.Parallel()
	for name, speak := range map[string]func(net.Conn){
		"garbage": func(c net.Conn) { io.WriteString(c, strings.Repeat("\x16garbage", 1000)) },
		"plain":   func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") },
		"silent":  func(c net.Conn) { io.Copy(io.Discard, c) },
		"closed":  func(net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { listener.Close() })
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					go func() {
						defer conn.Close()
						speak(conn)
					}()
				}
			}()
			server := startServer(t, "--ephemeral", withoutAccounts, preferred, "--kubelet-timeout=1s")
			_, port, _ := net.SplitHostPort(listener.Addr().String())
			client := onNode(t, server, port, "main")
			before := goroutines(t, client)
			for name, ask := range probes(client, server) {
				ctx := bounded(t, commandLimit)
				if err := ask(ctx, "main"); err == nil || ctx.Err() != nil {
					t.Errorf("%s: %v, %v", name, err, ctx.Err())
				}
			}
			awaitGoroutines(t, client, before)
		})
	}
}
