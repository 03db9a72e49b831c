package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// kubelet is the part of a node's server that clients reach through the API server, made with the libraries of kubelets
// and container runtimes. Commands run on this machine, in a directory of the test. Names of containers select a
// misbehavior: garbage, halfway, stuck, hang, angry, gone, elsewhere.
type kubelet struct {
	*httptest.Server
	dir     string
	ended   chan struct{} // closed when the test ends
	running atomic.Int64  // requests
	mu      struct {
		sync.Mutex
		queries []string // of logs
		peers   map[string]bool
	}
}

// startKubelet starts a kubelet on all addresses of this machine.
func startKubelet(t *testing.T, certificate tls.Certificate) *kubelet {
	t.Helper()
	k := &kubelet{dir: t.TempDir(), ended: make(chan struct{})}
	k.mu.peers = map[string]bool{}
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", k.logs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", k.exec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", k.exec)
	mux.HandleFunc("/portForward/{namespace}/{pod}", func(w http.ResponseWriter, r *http.Request) {
		options, err := portforward.NewV4Options(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, r, k, r.PathValue("pod"), "", options, time.Hour, time.Minute,
			portforward.SupportedProtocols)
	})
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %q\n", r.Method, r.URL.RequestURI(), body, r.Header.Get("Authorization"))
	})
	k.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.running.Add(1)
		defer k.running.Add(-1)
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			k.mu.Lock()
			k.mu.peers[r.TLS.PeerCertificates[0].Subject.CommonName] = true
			k.mu.Unlock()
		}
		mux.ServeHTTP(w, r)
	}))
	k.Listener.Close()
	k.Listener = listener
	k.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert}
	k.EnableHTTP2 = true
	k.Config.ErrorLog = log.New(io.Discard, "", 0)
	k.StartTLS()
	t.Cleanup(func() {
		close(k.ended)
		k.CloseClientConnections()
		k.Close()
	})
	return k
}

func (k *kubelet) port() string { return fmt.Sprint(k.Listener.Addr().(*net.TCPAddr).Port) }

// misbehave responds according to the name of the container, and reports whether it did.
func (k *kubelet) misbehave(w http.ResponseWriter, r *http.Request) bool {
	switch r.PathValue("container") {
	case "garbage":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			io.WriteString(conn, "\x00garbage\r\n\r\n")
			conn.Close()
			return true
		}
		panic(http.ErrAbortHandler) // HTTP/2: the stream breaks
	case "halfway", "stuck":
		k.begin(w, r)
	case "hang":
		select {
		case <-r.Context().Done():
		case <-k.ended:
		}
	case "angry":
		http.Error(w, "the kubelet is angry", http.StatusInternalServerError)
	case "gone":
		http.Error(w, "the container is gone", http.StatusNotFound)
	case "elsewhere":
		http.Redirect(w, r, "/healthz", http.StatusFound)
	default:
		return false
	}
	return true
}

// begin responds correctly, and then sends garbage and disconnects (halfway) or sends nothing more (stuck).
func (k *kubelet) begin(w http.ResponseWriter, r *http.Request) {
	var conn net.Conn
	if r.Header.Get("Upgrade") == "" {
		fmt.Fprintln(w, "the first line")
		http.NewResponseController(w).Flush()
	} else {
		var err error
		if conn, _, err = http.NewResponseController(w).Hijack(); err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n"+
			"X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n", r.Header.Get("Upgrade"))
	}
	switch {
	case r.PathValue("container") == "stuck":
		left := make(chan struct{})
		go func() { // the context of a hijacked connection does not end with it
			defer close(left)
			if conn != nil {
				io.Copy(io.Discard, conn)
			} else {
				<-r.Context().Done()
			}
		}()
		select {
		case <-left:
		case <-k.ended:
		}
	case conn != nil:
		io.WriteString(conn, strings.Repeat("\x80\x03garbage", 1000))
	default:
		panic(http.ErrAbortHandler)
	}
}

// logs writes two lines. If the client follows the log, it writes a third, then nothing until the client leaves.
func (k *kubelet) logs(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	k.mu.queries = append(k.mu.queries, r.URL.RawQuery)
	k.mu.Unlock()
	if k.misbehave(w, r) {
		return
	}
	fmt.Fprintf(w, "%s says\nhello\n", r.PathValue("container"))
	if r.FormValue("follow") != "true" {
		return
	}
	http.NewResponseController(w).Flush()
	fmt.Fprintln(w, "and more")
	http.NewResponseController(w).Flush()
	select {
	case <-r.Context().Done():
	case <-k.ended:
	}
}

// exec runs a command, or the program that a client attaches to.
func (k *kubelet) exec(w http.ResponseWriter, r *http.Request) {
	if k.misbehave(w, r) {
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod, container := r.PathValue("pod"), r.PathValue("container")
	if strings.HasPrefix(r.URL.Path, "/attach/") {
		remotecommand.ServeAttach(w, r, k, pod, "", container, options, time.Hour, time.Minute,
			remotecommand.SupportedStreamingProtocols)
		return
	}
	remotecommand.ServeExec(w, r, k, pod, "", container, r.URL.Query()["command"], options, time.Hour, time.Minute,
		remotecommand.SupportedStreamingProtocols)
}

// ExecInContainer implements remotecommand.Executor. The command "size" prints the first size of the terminal.
func (k *kubelet) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader,
	out, errs io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	if command[0] == "size" {
		if !tty {
			return errors.New("no terminal")
		}
		size := <-resize
		fmt.Fprintf(out, "%dx%d\r\n", size.Width, size.Height)
		return nil
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = k.dir, out, errs
	if tty {
		cmd.Stderr = out
	}
	if in != nil {
		stdin, err := cmd.StdinPipe() // exec would wait for a Reader, which ends with the connection
		if err != nil {
			return err
		}
		go func() { io.Copy(stdin, in); stdin.Close() }()
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

// AttachContainer implements remotecommand.Attacher with a program that echoes its input.
func (k *kubelet) AttachContainer(ctx context.Context, _, _, container string, in io.Reader, out, errs io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize) error {
	fmt.Fprintf(out, "attached to %s\n", container)
	if in == nil {
		return nil
	}
	return k.ExecInContainer(ctx, "", "", container, []string{"cat"}, in, out, errs, tty, resize, 0)
}

// PortForward implements portforward.PortForwarder. The ports of pods are ports of this machine.
func (k *kubelet) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer conn.Close()
	var copies sync.WaitGroup
	copies.Go(func() { io.Copy(conn, stream); conn.(*net.TCPConn).CloseWrite() })
	io.Copy(stream, conn)
	stream.Close()
	copies.Wait()
	return nil
}

// ownAddress returns an address at which other machines reach this machine, or "".
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if network, ok := a.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	return ""
}
