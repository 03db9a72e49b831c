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
	"errors"
	"log/slog"
	"os"
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
	log    *tail // empty if the configuration has its own log

	mu struct {
		sync.Mutex
		scratch []string // directories to remove
	}
}

// Start returns a server that is ready for requests, or ends the test. The server leaves no files on disk and stops
// when t and its subtests end. The configure functions change its configuration before it starts, for example to set a
// data directory or a token file.
//
// If the test fails, its log has the last lines of the server's log, unless the configuration has a log of its own.
func Start(t testing.TB, configure ...func(*bowsprit.Config)) *Server {
	t.Helper()
	s, err := start(configure)
	if err != nil {
		t.Fatalf("testserver: %v%s", err, s.logged())
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("testserver: %v", err)
		}
		if t.Failed() {
			t.Log("testserver: the test failed" + s.logged())
		}
	})
	return s
}

// New is Start for code without a testing.TB, such as TestMain or a suite of Ginkgo. The caller stops the server.
func New(configure ...func(*bowsprit.Config)) (*Server, error) {
	s, err := start(configure)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// start returns a server that is ready, or with an error one that has ended.
func start(configure []func(*bowsprit.Config)) (*Server, error) {
	s := &Server{log: &tail{}}
	// tests may run on busy machines
	config := bowsprit.Config{Ephemeral: true, ShutdownTimeout: 30 * time.Second}
	for _, f := range configure {
		f(&config)
	}
	if config.Log == nil {
		config.Log = slog.New(slog.NewTextHandler(s.log, nil))
	}
	server, err := bowsprit.New(config)
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1) // the result of Run, read once: here or by stop
	go func() { ended <- server.Run(ctx) }()
	s.server = server
	s.stop = sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-ended, s.clean())
	})
	select {
	case <-server.Ready():
	case err := <-ended:
		cancel()
		return s, err
	}
	return s, nil
}

// temporary makes a directory that is removed when the server stops.
func (s *Server) temporary() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err := os.MkdirTemp("", "testserver-")
	if err == nil {
		s.mu.scratch = append(s.mu.scratch, dir)
	}
	return dir, err
}

// clean removes the temporary directories.
func (s *Server) clean() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, dir := range s.mu.scratch {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// logged returns the log as the end of a message.
func (s *Server) logged() string {
	if text := s.Log(); text != "" {
		return "; log of the server:\n" + text
	}
	return ""
}

// Log returns the last lines of the server's log, at most 512 KiB. It is empty if the configuration has a log of its
// own.
func (s *Server) Log() string { return s.log.String() }

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
