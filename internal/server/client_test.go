package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/server/config"
)

// runServer runs a server until the test calls stop, which waits for its end, or ends itself.
func runServer(t *testing.T, config config.Config) (client coreClient, stop func()) {
	t.Helper()
	return runServerOn(t, "", config)
}

// runServerOn is runServer with a name for this machine.
func runServerOn(t *testing.T, hostname string, config config.Config) (client coreClient, stop func()) {
	t.Helper()
	server, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	server.hostname = hostname
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	select {
	case <-server.Ready():
	case err := <-ended:
		ended <- nil // for stop
		t.Fatal(err)
	}
	return coreClient{t, server}, stop
}

// start starts a server, so that the test can look into it. The test stops p.
func start(t *testing.T, server *Server, p *prepared) (*running, coreClient) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, err := p.start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.publish(r.opened); err != nil {
		t.Fatal(err)
	}
	return r, coreClient{t, server}
}

// coreClient sends requests as an administrator.
type coreClient struct {
	t      *testing.T
	server *Server
}

// do sends a request with a body of JSON and returns the answer, which must have the code.
func (c coreClient) do(method, path, body string, want int) map[string]any {
	c.t.Helper()
	var obj map[string]any
	_ = json.Unmarshal(c.send(method, path, body, want), &obj) // /readyz is text
	return obj
}

// text returns a page.
func (c coreClient) text(path string) string {
	c.t.Helper()
	return string(c.send(http.MethodGet, path, "", http.StatusOK))
}

func (c coreClient) send(method, path, body string, want int) []byte {
	c.t.Helper()
	transport, err := rest.TransportFor(c.server.RESTConfig())
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.server.URL()+path, bytes.NewReader([]byte(body)))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := transport.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != want {
		c.t.Fatalf("%s %s: %d, want %d: %s %v", method, path, res.StatusCode, want, data, err)
	}
	return data
}
