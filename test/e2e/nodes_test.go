package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// preferred are flags that both servers have, which make machines' names of no account.
const preferred = "--kubelet-preferred-address-types=InternalIP"

// TestWayToNodes runs testdata/nodes/way.txt against a server and a kubelet. With the reference it is recorded from
// kube-apiserver. The port 10250 stands for the kubelet's.
func TestWayToNodes(t *testing.T) {
	t.Parallel()
	_, certificate := certify(t, "127.0.0.1")
	k := startKubelet(t, certificate)
	runNodes(t, startStory(t, false, []string{preferred}), "way", map[string]string{"10250": k.port()})
}

// TestProxiesToNodes runs testdata/nodes/proxy.txt, with requests to servers that only the API server can reach.
func TestProxiesToNodes(t *testing.T) {
	t.Parallel()
	own := ownAddress(t)
	if own == "" {
		t.Skip("this machine has no address but those that servers do not pass requests on to")
	}
	_, certificate := certify(t, own)
	k := startKubelet(t, certificate)
	runNodes(t, startStory(t, false, []string{preferred}), "proxy", map[string]string{
		"10250": k.port(), "192.0.2.1": own,
	})
}

func runNodes(t *testing.T, server *process, name string, words map[string]string) {
	t.Helper()
	file := filepath.Join("testdata", "nodes", name+".txt")
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{server: server, dir: t.TempDir(), words: words}
	s.hook = startHook(t, s.dir)
	t.Cleanup(s.endBackground)
	got := s.run(t, strings.Split(strings.TrimSuffix(string(script), "\n"), "\n"))
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// onNode makes a node with a kubelet on the port, and a running pod on it with containers of the names.
func onNode(t *testing.T, server *process, kubeletPort string, containers ...string) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(server.config(t))
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	if node, err = client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	var port int32
	fmt.Sscan(kubeletPort, &port)
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = port
	if _, err = client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{NodeName: "one"}}
	for _, name := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: "x"})
	}
	if pod, err = client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	if _, err = client.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return client
}

// awaitIdle waits until no request runs at the kubelet.
func (k *kubelet) awaitIdle(t *testing.T) {
	t.Helper()
	ctx, tick := bounded(t, commandLimit), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for k.running.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d requests are still there", k.running.Load())
		}
	}
}

// awaitBusy waits until n requests run at the kubelet.
func (k *kubelet) awaitBusy(t *testing.T, n int64) {
	t.Helper()
	ctx, tick := bounded(t, commandLimit), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for k.running.Load() < n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d requests of %d have come", k.running.Load(), n)
		}
	}
}

// TestPortForward checks that ports of a pod are forwarded over WebSockets and over SPDY.
func TestPortForward(t *testing.T) {
	t.Parallel()
	_, certificate := certify(t, "127.0.0.1")
	k := startKubelet(t, certificate)
	server := startServer(t, "--ephemeral", withoutAccounts, preferred)
	onNode(t, server, k.port(), "main")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s has %d bytes", r.URL.Path, n)
	}))
	t.Cleanup(web.Close)
	port := regexp.MustCompile(`\d+$`).FindString(web.URL)
	for _, sockets := range []string{"true", "false"} {
		t.Run("websockets="+sockets, func(t *testing.T) {
			cmd := exec.CommandContext(bounded(t, commandLimit), filepath.Join(binaries, "kubectl"), "port-forward",
				"--address=127.0.0.1", "pod/web", ":"+port)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+server.kubeconfig, "KUBECTL_PORT_FORWARD_WEBSOCKETS="+sockets)
			line := firstLine(t, cmd)
			address := strings.TrimPrefix(strings.TrimSuffix(line, " -> "+port), "Forwarding from ")
			var requests sync.WaitGroup
			for i := range 10 {
				requests.Go(func() {
					path := fmt.Sprintf("/%d", i)
					resp, err := http.Post("http://"+address+path, "", strings.NewReader(strings.Repeat("x", 100_000)))
					if err != nil {
						t.Error(err)
						return
					}
					defer resp.Body.Close()
					if body, _ := io.ReadAll(resp.Body); string(body) != path+" has 100000 bytes" {
						t.Errorf("%s: %s", path, body)
					}
				})
			}
			requests.Wait()
		})
	}
	http.DefaultClient.CloseIdleConnections()
}

// executor returns an executor that runs a command in a container over WebSockets or SPDY.
func executor(t *testing.T, config *rest.Config, client *kubernetes.Clientset, container string, sockets bool,
	o corev1.PodExecOptions) remotecommand.Executor {
	t.Helper()
	o.Container = container
	where := client.CoreV1().RESTClient().Post().Namespace("default").Resource("pods").Name("web").
		SubResource("exec").VersionedParams(&o, scheme.ParameterCodec).URL()
	var e remotecommand.Executor
	var err error
	if sockets {
		e, err = remotecommand.NewWebSocketExecutor(config, http.MethodGet, where.String())
	} else {
		e, err = remotecommand.NewSPDYExecutor(config, http.MethodPost, where)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestKubeletCertificates checks that the configured authority must sign the certificate of a kubelet, except for logs
// if the client requests that. The kubelet receives the server's own certificate.
func TestKubeletCertificates(t *testing.T) {
	t.Parallel()
	authority, right := certify(t, "127.0.0.1")
	_, wrong := certify(t, "127.0.0.1")
	file := filepath.Join(t.TempDir(), "kubelets.crt")
	write(t, file, string(authority))
	for name, certificate := range map[string]bool{"right": true, "wrong": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := startKubelet(t, wrong)
			if certificate {
				k = startKubelet(t, right)
			}
			server := startServer(t, "--ephemeral", withoutAccounts, preferred, "--kubelet-certificate-authority="+file)
			client := onNode(t, server, k.port(), "main")
			for _, skip := range []bool{false, true} {
				_, err := client.CoreV1().Pods("default").GetLogs("web", &corev1.PodLogOptions{
					InsecureSkipTLSVerifyBackend: skip,
				}).DoRaw(t.Context())
				if want := certificate || skip; (err == nil) != want {
					t.Errorf("logs, skipping the check: %v: %v", skip, err)
				}
			}
			for _, sockets := range []bool{true, false} {
				o := corev1.PodExecOptions{Command: []string{"true"}, Stdout: true}
				err := executor(t, server.config(t), client, "main", sockets, o).StreamWithContext(t.Context(),
					remotecommand.StreamOptions{Stdout: io.Discard})
				if (err == nil) != certificate ||
					err != nil && !strings.Contains(err.Error(), "x509: certificate signed by unknown authority") {
					t.Errorf("exec, websockets=%v: %v", sockets, err)
				}
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			if !k.mu.peers["kube-apiserver-kubelet-client"] {
				t.Errorf("the kubelet has seen %v", k.mu.peers)
			}
		})
	}
}

// TestManyLogs lets 500 clients follow a log at once. Each gets the existing lines, and the server frees everything
// when they leave.
func TestManyLogs(t *testing.T) {
	t.Parallel()
	_, certificate := certify(t, "127.0.0.1")
	k := startKubelet(t, certificate)
	server := startServer(t, "--ephemeral", withoutAccounts, preferred)
	client := onNode(t, server, k.port(), "main")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var followers, first sync.WaitGroup
	for range 500 {
		first.Add(1)
		followers.Go(func() {
			done := sync.OnceFunc(first.Done)
			defer done()
			log, err := client.CoreV1().Pods("default").GetLogs("web", &corev1.PodLogOptions{Follow: true}).Stream(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			defer log.Close()
			lines := bufio.NewScanner(log)
			for _, want := range []string{"main says", "hello", "and more"} {
				if !lines.Scan() || lines.Text() != want {
					t.Errorf("%q instead of %q: %v", lines.Text(), want, lines.Err())
					return
				}
			}
			done()
			if lines.Scan() || !errors.Is(lines.Err(), context.Canceled) {
				t.Errorf("after its end: %q, %v", lines.Text(), lines.Err())
			}
		})
	}
	first.Wait()
	if n := k.running.Load(); n != 500 {
		t.Errorf("%d followers at the kubelet", n)
	}
	leave()
	followers.Wait()
	k.awaitIdle(t)
}
