package front

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authn"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/front/conn"
	"github.com/bowsprit/bowsprit/internal/request"
)

// running is a server behind TLS with certificates of its own.
type running struct {
	*Server
	pki    *pki.PKI
	addr   string
	served chan error // the result of Serve
}

func run(t *testing.T, resources Handler, change func(*Config)) *running {
	t.Helper()
	p, err := pki.Open(pki.Config{})
	must(t, err)
	s := newServer(t, resources, func(c *Config) {
		c.Authenticator = authn.New(authn.Config{ClientRoots: p.ClientRoots})
		c.TLS = p.TLSConfig()
		if change != nil {
			change(c)
		}
	})
	ln, err := conn.Listen(t.Context(), "127.0.0.1:0")
	must(t, err)
	r := &running{Server: s, pki: p, addr: ln.Addr().String(), served: make(chan error, 1)}
	go func() { r.served <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ctx)
	})
	return r
}

// client returns a client of HTTP/1.1 or 2 that shows the certificate of admin, nil for none.
func (r *running) client(t *testing.T, protocol int, admin *pki.PKI) *http.Client {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(r.pki.ServerCA())
	if admin != nil {
		certificate, err := tls.X509KeyPair(admin.Admin())
		must(t, err)
		// Ignore the authorities that the server hints at.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &certificate, nil
		}
	}
	transport := &http.Transport{TLSClientConfig: config, Protocols: &http.Protocols{}}
	transport.Protocols.SetHTTP1(protocol == 1)
	transport.Protocols.SetHTTP2(protocol == 2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (r *running) get(t *testing.T, c *http.Client, path string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get("https://" + r.addr + path)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp, string(body)
}

// directHTTP2 is the name of subtests that serve HTTP/2 by package h2.
const directHTTP2 = "DirectHTTP2"

// protocols runs f for HTTP/1.1, for HTTP/2 by Go's server, and for HTTP/2 by package h2.
func protocols(t *testing.T, f func(t *testing.T, protocol int)) {
	for _, protocol := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP%d", protocol), func(t *testing.T) {
			t.Parallel()
			f(t, protocol)
		})
	}
	t.Run(directHTTP2, func(t *testing.T) {
		t.Parallel()
		f(t, 2)
	})
}

// http2Servers runs f in a bubble for each server of HTTP/2.
func http2Servers(t *testing.T, f func(t *testing.T)) {
	for _, name := range []string{"GoHTTP2", directHTTP2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, f)
		})
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, protocol int) {
		r := run(t, func(w http.ResponseWriter, _ *http.Request, _ *request.Info, u user.Info) {
			_, _ = io.WriteString(w, u.GetName())
		}, nil)
		resp, body := r.get(t, r.client(t, protocol, r.pki), "/api/v1/pods")
		if resp.StatusCode != 200 || body != "kubernetes-admin" || resp.ProtoMajor != protocol {
			t.Errorf("admin: %s %d %q", resp.Proto, resp.StatusCode, body)
		}
		resp, body = r.get(t, r.client(t, protocol, nil), "/api/v1/pods")
		if resp.StatusCode != 403 || !strings.Contains(body, "system:anonymous") {
			t.Errorf("anonymous: %d %q", resp.StatusCode, body)
		}
		other, err := pki.Open(pki.Config{})
		must(t, err)
		resp, body = r.get(t, r.client(t, protocol, other), "/healthz")
		if resp.StatusCode != 401 || !strings.Contains(body, "Unauthorized") {
			t.Errorf("stranger: %d %q", resp.StatusCode, body)
		}
	})
}

func TestListenErrors(t *testing.T) {
	t.Parallel()
	ln, err := conn.Listen(t.Context(), "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	_, err = conn.Listen(t.Context(), ln.Addr().String())
	if !errors.Is(err, conn.ErrPortInUse) || err.Error() != ln.Addr().String()+" is in use by another process" {
		t.Errorf("busy port: %v", err)
	}
	if _, err = conn.Listen(t.Context(), "127.0.0.1:x"); err == nil ||
		!strings.Contains(err.Error(), "cannot listen on 127.0.0.1:x") {
		t.Errorf("bad port: %v", err)
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, protocol int) {
		inside, leave := make(chan struct{}), make(chan struct{})
		r := run(t, func(w http.ResponseWriter, r *http.Request, info *request.Info, _ user.Info) {
			if info.Verb == "watch" {
				_, _ = io.WriteString(w, "event\n")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			inside <- struct{}{}
			<-leave
			if r.Context().Err() != nil {
				t.Error("a running request was cancelled")
			}
			_, _ = io.WriteString(w, "finished")
		}, nil)
		c := r.client(t, protocol, r.pki)

		watch, err := c.Get("https://" + r.addr + "/api/v1/pods?watch=1")
		must(t, err)
		defer watch.Body.Close()
		events := bufio.NewReader(watch.Body)
		if line, err := events.ReadString('\n'); line != "event\n" {
			t.Fatalf("watch: %q %v", line, err)
		}
		answers := make(chan string, 1)
		go func() {
			resp, err := c.Get("https://" + r.addr + "/api/v1/pods/x")
			if err != nil {
				answers <- err.Error()
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			answers <- fmt.Sprint(string(body), err)
		}()
		<-inside

		stopped := make(chan error, 1)
		go func() { stopped <- r.Shutdown(t.Context()) }()
		if rest, err := io.ReadAll(events); err != nil || len(rest) > 0 {
			t.Errorf("the watch did not end cleanly: %q %v", rest, err)
		}
		if err := <-r.served; err != nil { // the listener is closed
			t.Errorf("Serve: %v", err)
		}
		if _, err := net.Dial("tcp", r.addr); err == nil {
			t.Error("a new connection was taken")
		}
		select {
		case err := <-stopped:
			t.Errorf("Shutdown did not wait for the running request: %v", err)
		default:
		}
		close(leave)
		if got := <-answers; got != "finished<nil>" {
			t.Errorf("the running request got %q", got)
		}
		if err := <-stopped; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

func TestShutdownIsBounded(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, protocol int) {
		inside := make(chan struct{})
		r := run(t, func(_ http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
			inside <- struct{}{}
			<-r.Context().Done()
		}, nil)
		failed := make(chan error, 1)
		go func() {
			resp, err := r.client(t, protocol, r.pki).Get("https://" + r.addr + "/api/v1/pods/x")
			if err == nil {
				resp.Body.Close()
			}
			failed <- err
		}()
		<-inside
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the second signal
		if err := r.Shutdown(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-failed; err == nil {
			t.Error("the running request got an answer")
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
