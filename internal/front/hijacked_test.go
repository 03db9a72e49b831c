package front

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// taker hijacks a connection and holds it until release is closed, or the connection is.
type taker struct{ has, release, done chan struct{} }

func (k taker) serve(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
	defer close(k.done)
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	close(k.has)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, conn)
	}()
	select {
	case <-k.release:
		conn.Close()
	case <-gone:
	}
	<-gone
}

// TestShutdownWaitsForTakenConnections checks that Shutdown waits for handlers with hijacked connections, and finally
// closes these.
func TestShutdownWaitsForTakenConnections(t *testing.T) {
	t.Parallel()
	for name, patient := range map[string]bool{"to their end": true, "no longer": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := taker{make(chan struct{}), make(chan struct{}), make(chan struct{})}
			r := run(t, k.serve, nil)
			certificate, err := tls.X509KeyPair(r.pki.Admin())
			must(t, err)
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(r.pki.ServerCA())
			conn, err := tls.Dial("tcp", r.addr,
				&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}})
			must(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, "GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n")
			must(t, err)
			<-k.has
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stopped := make(chan error, 1)
			go func() { stopped <- r.Shutdown(ctx) }()
			<-r.served // the listener is closed
			select {
			case err := <-stopped:
				t.Fatalf("it did not wait: %v", err)
			case <-k.done:
				t.Fatal("the connection was closed")
			default:
			}
			if patient {
				close(k.release)
			} else {
				cancel()
			}
			if err := <-stopped; patient && err != nil || !patient && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			<-k.done
			if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) {
				t.Errorf("the connection is open: %v", err)
			}
		})
	}
}
