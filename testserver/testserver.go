// Package testserver gives a Go test a Kubernetes API server of its own, in the test's process.
//
//	server := testserver.Start(t)
//	client, err := dynamic.NewForConfig(server.RESTConfig())
//
// Each call starts a fresh control plane on a free port. It has only the objects of every cluster, and shares nothing
// with other tests. It ends with the test, and removes its goroutines and files; it needs no other process and no
// download. Tests may start any number of servers, in parallel.
package testserver

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
)

// Server is a running server. Its methods may be called from any goroutine.
type Server struct {
	server *bowsprit.Server
	stop   func() error
}

// Start returns a server that is ready for requests, or ends the test. The server leaves no files on disk and stops
// when t and its subtests end. The configure functions change its configuration before it starts, for example to set a
// data directory or a token file.
func Start(t testing.TB, configure ...func(*bowsprit.Config)) *Server {
	t.Helper()
	// tests may run on busy machines
	config := bowsprit.Config{Ephemeral: true, ShutdownTimeout: 30 * time.Second}
	for _, f := range configure {
		f(&config)
	}
	server, err := bowsprit.New(config)
	if err != nil {
		t.Fatalf("testserver: %v", err)
	}

	// Not t.Context(): it ends before the cleanups run, which may still use the server.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1) // the result of Run, read once: here or by stop
	go func() { ended <- server.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	select {
	case <-server.Ready():
	case err := <-ended:
		cancel()
		t.Fatalf("testserver: %v", err)
	}
	s := &Server{server: server, stop: stop}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("testserver: %v", err)
		}
	})
	return s
}

// URL returns where the API is served, such as "https://127.0.0.1:41234".
func (s *Server) URL() string { return s.server.URL() }

// RESTConfig returns a client configuration with the rights of an administrator and no limit on the rate of requests.
// The caller owns it.
func (s *Server) RESTConfig() *rest.Config { return s.server.RESTConfig() }

// Kubeconfig returns a file with the same credentials, for programs such as kubectl. The server removes it when it
// stops.
func (s *Server) Kubeconfig() string { return s.server.Kubeconfig() }

// Stop ends the server and waits until its goroutines and files are gone. The test's end does the same; call it to test
// a client without its server. Further calls return the result of the first.
func (s *Server) Stop() error { return s.stop() }
