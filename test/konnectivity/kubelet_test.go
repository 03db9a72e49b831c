package konnectivity

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientexec "k8s.io/client-go/tools/remotecommand"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/authority"
	"github.com/bowsprit/bowsprit/testserver"
)

// node is the server of a kubelet in a cluster that the API server reaches only through agents.
type node struct {
	port    int32
	running atomic.Int64 // requests
}

func startNode(t *testing.T) *node {
	t.Helper()
	n := &node{}
	mux := http.NewServeMux()
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s says hello\n", r.PathValue("container"))
		if r.FormValue("follow") == "true" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		options, err := remotecommand.NewOptions(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		remotecommand.ServeExec(w, r, n, r.PathValue("pod"), "", r.PathValue("container"), r.URL.Query()["command"],
			options, time.Hour, time.Minute, remotecommand.SupportedStreamingProtocols)
	})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.running.Add(1)
		defer n.running.Add(-1)
		mux.ServeHTTP(w, r)
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{authority.New(t).Pair(t, "localhost")},
	}
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	n.port = int32(s.Listener.Addr().(*net.TCPAddr).Port)
	return n
}

// ExecInContainer implements remotecommand.Executor: the command prints its name, and then its input until the input
// ends.
func (*node) ExecInContainer(_ context.Context, _, _, _ string, command []string, in io.Reader, out, _ io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	_, _ = fmt.Fprintf(out, "%v: ", command)
	_, err := io.Copy(out, in)
	return err
}

// join creates a node, and a pod on it.
func (n *node) join(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx := t.Context()
	machine, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// A name that the agent resolves.
	machine.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "localhost"}}
	machine.Status.DaemonEndpoints.KubeletEndpoint.Port = n.port
	if _, err = client.CoreV1().Nodes().UpdateStatus(ctx, machine, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{NodeName: "one", Containers: []corev1.Container{{Name: "main", Image: "x"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	if _, err = client.CoreV1().Pods("default").UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// execute runs a command in the pod that sends back a long text.
func execute(ctx context.Context, config *rest.Config, client *kubernetes.Clientset, sockets bool) error {
	where := client.CoreV1().RESTClient().Post().Namespace("default").Resource("pods").Name("web").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: []string{"cat"}, Stdin: true, Stdout: true},
			scheme.ParameterCodec).URL()
	var e clientexec.Executor
	var err error
	if sockets {
		e, err = clientexec.NewWebSocketExecutor(config, http.MethodGet, where.String())
	} else {
		e, err = clientexec.NewSPDYExecutor(config, http.MethodPost, where)
	}
	if err != nil {
		return err
	}
	var out bytes.Buffer
	text := strings.Repeat("a long way to go\n", 100_000)
	streams := clientexec.StreamOptions{Stdin: strings.NewReader(text), Stdout: &out}
	if err := e.StreamWithContext(ctx, streams); err != nil {
		return err
	}
	if out.String() != "[cat]: "+text {
		return fmt.Errorf("%d bytes came back of %d", out.Len(), len(text))
	}
	return nil
}

// TestKubelet reads logs and runs commands on a kubelet through all pairs, and only through them.
func TestKubelet(t *testing.T) {
	for _, pair := range pairs {
		t.Run(pair.name, func(t *testing.T) {
			s := newSite(t)
			s.kubeconfig = ""
			api := testserver.Start(t, func(c *bowsprit.Config) { c.Egress.ConfigFile = s.config })
			config := api.RESTConfig()
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			n := startNode(t)
			n.join(t, client)
			logs := func(ctx context.Context, follow bool) (io.ReadCloser, error) {
				return client.CoreV1().Pods("default").GetLogs("web", &corev1.PodLogOptions{Follow: follow}).Stream(ctx)
			}
			if stream, err := logs(t.Context(), false); err == nil {
				stream.Close()
				t.Error("the kubelet was reached without the agent")
			}
			if err := execute(t.Context(), config, client, true); err == nil {
				t.Error("a command ran without the agent")
			}
			pair.server(t, s)
			pair.agent(t, s)
			within(t, func() error {
				stream, err := logs(t.Context(), false)
				if err != nil {
					return err
				}
				defer stream.Close()
				text, err := io.ReadAll(stream)
				if err == nil && string(text) != "main says hello\n" {
					err = fmt.Errorf("the log is %q", text)
				}
				return err
			})
			for _, sockets := range []bool{true, false} {
				if err := execute(t.Context(), config, client, sockets); err != nil {
					t.Errorf("exec, over WebSockets: %t: %v", sockets, err)
				}
			}
			// Connections of a client end at the kubelet when the client leaves.
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			stream, err := logs(ctx, true)
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			if _, err := io.ReadFull(stream, make([]byte, len("main says hello\n"))); err != nil {
				t.Error(err)
			}
			leave()
			within(t, func() error {
				if n.running.Load() > 0 {
					return errors.New("the kubelet still writes the log")
				}
				return nil
			})
		})
	}
}
