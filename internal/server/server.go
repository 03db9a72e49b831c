// Package server runs a control plane: it opens the store, builds the core and the parts, loads the view, and serves.
//
// The subject of a configuration's group is in the file of its name. Server is safe for concurrent use.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/parts"
	"github.com/bowsprit/bowsprit/internal/server/version"
)

// Server is a control plane in this process.
type Server struct {
	config   config.Config
	hostname string        // of this machine, for tests; "" means its own
	ready    chan struct{} // closed when the API answers

	// Written before ready is closed, read after.
	url        string
	kubeconfig string
	etcdURL    string
	pki        *pki.PKI

	mu struct {
		sync.Mutex
		running bool
	}
}

// New returns a server that is not running yet. It returns an error for an invalid configuration.
func New(c config.Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Server{config: config.WithDefaults(c), ready: make(chan struct{})}, nil
}

// Ready is closed when the server answers requests.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// URL returns the URL of the API, such as "https://127.0.0.1:6443". It is valid once Ready is closed.
func (s *Server) URL() string { return s.url }

// Kubeconfig returns the file with the administrator's credentials. It is valid once Ready is closed.
func (s *Server) Kubeconfig() string { return s.kubeconfig }

// EtcdURL returns the client URL of the embedded etcd, or "" if it does not listen. It is valid once Ready is closed.
func (s *Server) EtcdURL() string { return s.etcdURL }

// RESTConfig returns a client configuration with the administrator's credentials. It is valid once Ready is closed; the
// caller owns it. It does not limit the rate of requests.
func (s *Server) RESTConfig() *rest.Config {
	cert, key := s.pki.Admin()
	return &rest.Config{
		Host:            s.url,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.pki.ServerCA(), CertData: cert, KeyData: key},
		QPS:             -1,
	}
}

// UserKubeconfig returns a kubeconfig for a user with this name and these groups, with a new client certificate that is
// valid for 30 days. Bindings to the name and the groups determine the user's permissions. It fails if the
// configuration does not accept such certificates. It may be called once Ready is closed.
func (s *Server) UserKubeconfig(user string, groups ...string) ([]byte, error) {
	return s.pki.UserKubeconfig(s.url, pki.Person{User: user, Groups: groups, Duration: userLife})
}

// userLife is how long the certificate of UserKubeconfig is valid. It cannot be revoked before.
const userLife = 30 * 24 * time.Hour

// Run starts the server and serves until ctx ends or a part fails. It returns nil after an orderly stop: it refuses new
// requests, finishes running ones, ends watches, syncs acknowledged writes to disk, and leaves no goroutine and no
// temporary file behind. Run may be called once.
func (s *Server) Run(ctx context.Context) (err error) {
	s.mu.Lock()
	if s.mu.running {
		s.mu.Unlock()
		return errors.New("the server has been run already")
	}
	s.mu.running = true
	s.mu.Unlock()

	p := prepare(s.config, parts.Of(&s.config, s.hostname))
	log, v := s.config.Log, version.Get()
	log.Info("starting", "version", v.Bowsprit, "kubernetes", v.Kubernetes, "dataDir", s.config.DataDir)
	defer func() { err = errors.Join(err, s.stopLogged(p)) }()
	r, err := p.start(ctx)
	if err != nil {
		return err
	}
	if err := s.publish(r.opened); err != nil {
		return err
	}
	return r.wait(ctx)
}

// stopLogged stops the server and logs the stop.
func (s *Server) stopLogged(p *prepared) error {
	began := time.Now()
	p.log.Info("stopping", "runningRequestsMayTake", s.config.ShutdownTimeout)
	err := p.stop()
	p.log.Info("stopped", "after", time.Since(began))
	return err
}

// publish sets the fields that clients need to reach the server.
func (s *Server) publish(o *opened) error {
	s.pki, s.etcdURL = o.host.Certificates, o.host.Store.ClientURL()
	s.url = o.host.URL
	own := filepath.Join(o.dir, "kubeconfig")
	s.kubeconfig = cmp.Or(s.config.Kubeconfig, own)
	if err := o.host.Certificates.WriteKubeconfig(own, s.url); err != nil {
		return fmt.Errorf("kubeconfig: %w: choose another directory with --data-dir", err)
	}
	if file, err := filepath.Abs(s.config.Kubeconfig); s.config.Kubeconfig != "" && (err != nil || file != own) {
		if err := o.host.Certificates.MergeKubeconfig(s.kubeconfig, s.url); err != nil {
			return fmt.Errorf("kubeconfig: %w: choose another file with --write-kubeconfig", err)
		}
	}
	close(s.ready)
	s.config.Log.Info("ready", "url", s.url, slog.Duration("after", time.Since(o.host.Started)))
	return nil
}
