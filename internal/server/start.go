package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/openapi"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/kubelet"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/front/audit"
	"github.com/bowsprit/bowsprit/internal/front/figures"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/tracing"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/parts"
	"github.com/bowsprit/bowsprit/internal/server/reach"
	"github.com/bowsprit/bowsprit/internal/server/version"
	"github.com/bowsprit/bowsprit/internal/storage/datadir"
	"github.com/bowsprit/bowsprit/internal/storage/encrypt"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/storage/store/external"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// process is a running server: the core in the order of its start, and the other parts. stop stops them in the opposite
// order.
type process struct {
	config config.Config
	log    *slog.Logger
	parts  []part.Part
	host   part.Host // the core for the parts, filled during the start

	// behind holds the dependencies of an extension API server on the server in front of it, or nil for all other
	// servers.
	behind *part.Behind

	dir      string
	listener net.Listener
	keys     *serviceaccount.Keys
	// encryption is nil without encryption.
	encryption *encrypt.Encryption
	requests   *figures.StoreRequests
	traces     *tracing.Provider // nil without tracing
	handlers   part.Handlers
	admission  admit.Chain
	documents  *openapi.Handler
	auditor    *audit.Auditor    // nil without auditing
	libraries  figures.Libraries // metrics of the libraries in use
	control    *control.Controllers
	front      *front.Server

	broken chan error // the first failure while running; capacity 1, later ones are dropped
	undo   []func() error
}

func newProcess(c config.Config, all []part.Part) *process {
	clock := c.Clock
	if clock == nil {
		clock = part.MachineClock{}
	}
	p := &process{
		config: c, log: c.Log, parts: all, behind: parts.Behind(&c), broken: make(chan error, 1),
		libraries: kubelet.Metrics(),
	}
	p.host = part.Host{
		Log: c.Log, Started: time.Now(), Now: clock.Now, AfterFunc: clock.AfterFunc, NewUID: uuid.NewString,
		Runs:    func(controller string) bool { return config.Runs(&c.Controllers, controller) },
		Metrics: prometheus.NewRegistry(), Egress: &egress.Egress{},
		Background: p.background, OnStop: p.onStop,
	}
	return p
}

// steps returns the steps of the start, in order. Each registers its reversal with onStop.
func (p *process) steps() []func(context.Context) error {
	return []func(context.Context) error{
		p.checkAddress,
		p.openDataDir,
		p.openEgress,
		p.openTracing,
		p.openStore,
		p.openCertificates,
		p.listen,
		p.buildCatalog,
		p.buildAuth,
		p.buildFlow,
		p.buildHandlers,
		p.buildAdmission,
		p.buildVerbs,
		p.buildDocuments,
		p.buildControllers,
		p.buildAudit,
		p.buildFront,
		p.loadView,
		p.reloadEncryption,
		p.startParts,
		p.startControllers,
		p.serve,
	}
}

func (p *process) onStop(f func() error) { p.undo = append(p.undo, f) }

// stop undoes the steps that were done, the last first.
func (p *process) stop() error {
	var errs []error
	for i := len(p.undo) - 1; i >= 0; i-- {
		errs = append(errs, p.undo[i]())
	}
	return errors.Join(errs...)
}

// wait returns nil when ctx ends, or the error of the part that broke.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.host.Store.Failed():
		return nil // closing it returns the reason
	case err := <-p.broken:
		select {
		case <-p.host.Store.Failed():
			return nil // the part broke because the store did
		default:
			return err
		}
	}
}

// background runs f until the server stops. An error that f returns before that stops the server.
func (p *process) background(f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			select {
			case p.broken <- err:
			default:
			}
		}
	})
	p.onStop(func() error {
		cancel()
		wg.Wait()
		return nil
	})
}

func (p *process) openDataDir(context.Context) error {
	dir, cleanup, err := datadir.Prepare(p.config.DataDir, p.log)
	if err != nil {
		return err
	}
	p.onStop(func() error { cleanup(); return nil })
	p.dir = dir
	if p.config.DataDir == "" {
		return nil
	}
	p.host.Dir = dir
	return datadir.MarkFormat(dir, version.Get().Bowsprit)
}

func (p *process) openStore(ctx context.Context) error {
	defer part.NoteSlow(p.log, "open the store", "dir", p.dir, "etcd", strings.Join(p.config.Etcd.Servers, ","))()
	requests := figures.NewStoreRequests()
	p.host.Metrics.MustRegister(requests)
	p.requests = requests
	c := store.Config{Prefix: p.config.Etcd.Prefix, Log: p.log, Observe: p.observeStore}
	if p.traces != nil {
		c.Tracing = p.traces
	}
	if len(p.config.Etcd.Servers) > 0 {
		c.Etcd = external.Config{
			Endpoints: p.config.Etcd.Servers, CAFile: p.config.Etcd.CAFile, CertFile: p.config.Etcd.CertFile,
			KeyFile: p.config.Etcd.KeyFile, Dial: p.host.Egress.Selected(egress.Etcd),
		}
	} else {
		etcd := embedded.Config{
			Dir: filepath.Join(p.dir, "etcd"), NoSync: p.config.Ephemeral,
			ListenClientURL: p.config.Etcd.ListenClientURL, Quota: p.config.Etcd.QuotaBackendBytes,
			History: cluster.History(p.config.Workloads.Simulation != nil),
		}
		if p.config.Ephemeral && p.behind != nil {
			// Clients of the server in front outlive this one. No earlier start has given out so large a revision.
			etcd.FirstRevision = p.host.Started.UnixMicro()
		}
		c.Etcd = etcd
	}
	s, err := store.Open(ctx, c)
	if err != nil {
		return err
	}
	p.host.Store = s
	if u := p.config.Etcd.ListenClientURL; u != "" {
		p.log.Warn("the embedded etcd is open to every process of this machine, without TLS and without a password: each "+
			"may read and change all objects", "url", u)
	}
	p.onStop(s.Close)
	return s.MarkFormat(ctx, version.Get().Bowsprit)
}

func (p *process) openCertificates(ctx context.Context) error {
	c := pki.Config{
		Dir: filepath.Join(p.dir, "pki"), Log: p.log,
		Hosts:           slices.Concat(reach.Hosts(&p.config), p.behind.ServingHosts()),
		ServingCertFile: p.config.TLS.CertFile, ServingKeyFile: p.config.TLS.PrivateKeyFile,
		ClientCAFile: p.config.Authentication.ClientCAFile,
		ProxyCAFile:  p.config.Authentication.RequestHeader.ClientCAFile,
		NoOwnClients: p.config.Authentication.NoOwnClients,

		ProxyClientCertFile: p.config.Aggregation.ProxyClientCertFile,
		ProxyClientKeyFile:  p.config.Aggregation.ProxyClientKeyFile,
	}
	for _, text := range p.config.TLS.SNICertKeys {
		named, err := pki.ParseNamed(text)
		if err != nil {
			return err
		}
		c.Named = append(c.Named, named)
	}
	wanted, err := config.ParseTLS(&p.config.TLS)
	if err != nil {
		return err
	}
	c.MinVersion, c.CipherSuites = wanted.MinVersion, wanted.CipherSuites
	if p.config.DataDir == "" {
		c.Dir = "" // the directory is temporary
	}
	keys, err := pki.Open(c)
	if err != nil {
		return fmt.Errorf("%w: correct the file, or the flag that names it", err)
	}
	p.host.Certificates = keys
	if err := p.checkProxies(); err != nil {
		return err
	}
	if err := p.openKeys(ctx, c.Dir); err != nil {
		return err
	}
	p.background(func(ctx context.Context) error { p.keys.Run(ctx); return nil })
	p.background(func(ctx context.Context) error { keys.Run(ctx); return nil })
	return nil
}

// openKeys opens the keys of service accounts. dir holds the server's own keys.
func (p *process) openKeys(ctx context.Context, dir string) (err error) {
	c := &p.config.ServiceAccounts
	keys := serviceaccount.KeyConfig{
		Dir: dir, SigningFile: c.SigningKeyFile, KeyFiles: c.KeyFiles, Log: p.log, Metrics: p.host.Metrics,
	}
	if c.SigningEndpoint != "" {
		p.keys, err = serviceaccount.OpenExternal(ctx, c.SigningEndpoint, keys)
		if err != nil {
			return fmt.Errorf("%w: see that it runs, or correct --service-account-signing-endpoint", err)
		}
		if longest := p.keys.MaxLife(); c.MaxTokenExpiration > longest {
			return fmt.Errorf("service-account-max-token-expiration cannot be set longer than the token expiration supported by service-account-signing-endpoint: %s > %s",
				c.MaxTokenExpiration, longest)
		}
		return nil
	}
	if p.keys, err = serviceaccount.OpenKeys(keys); err != nil {
		return fmt.Errorf("%w: correct the file, or the flag that names it", err)
	}
	if len(p.config.Etcd.Servers) > 0 && c.SigningKeyFile == "" {
		p.log.Info(
			"tokens of service accounts are signed with a key of this process's own: replicas that share an etcd need --service-account-signing-key-file")
	}
	return nil
}

func (p *process) loadView(ctx context.Context) error {
	defer part.NoteSlow(p.log, "read all objects from the store")()
	if err := p.host.View.Load(ctx); err != nil {
		return fmt.Errorf("read the store: %w", err)
	}
	p.background(p.host.View.Run)
	return nil
}

// startParts makes the objects that must exist before the first request.
func (p *process) startParts(ctx context.Context) error {
	defer part.NoteSlow(p.log, "make the objects that every cluster has")()
	if p.behind == nil {
		if err := control.Bootstrap(ctx, p.host.Verbs); err != nil {
			return err
		}
	}
	for _, one := range p.parts {
		if one.Start == nil {
			continue
		}
		if err := one.Start(ctx, &p.host); err != nil {
			return fmt.Errorf("%s: %w", one.Name, err)
		}
	}
	p.background(p.keep)
	return nil
}

// keepEvery is the interval in which the server checks the objects of its start, as in kube-apiserver.
const keepEvery = 10 * time.Second

// keep recreates objects that every server has and a client has deleted, until ctx ends.
func (p *process) keep(ctx context.Context) error {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		var err error
		if p.behind == nil {
			err = control.KeepNamespaces(ctx, p.host.Verbs)
		}
		for _, one := range p.parts {
			if one.Keep != nil {
				err = errors.Join(err, one.Keep(ctx, &p.host))
			}
		}
		if err != nil && ctx.Err() == nil {
			p.log.Warn(
				"an object that the server always has is missing and cannot be created; retried every 10 seconds",
				"error", err)
		}
	}
}

func (p *process) startControllers(context.Context) error {
	p.background(func(ctx context.Context) error { p.control.Run(ctx); return nil })
	p.background(p.trim)
	return nil
}

func (p *process) serve(context.Context) error {
	p.background(func(context.Context) error { return p.front.Serve(p.listener) })
	p.onStop(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), p.config.ShutdownTimeout)
		defer cancel()
		return p.front.Shutdown(ctx)
	})
	return nil
}
