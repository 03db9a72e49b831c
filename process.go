package bowsprit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// process is a running server: the parts in the order in which they start. It is the one place where they are put
// together. stop takes them down in the opposite order.
type process struct {
	config Config
	log    *slog.Logger
	began  time.Time

	dir      string
	store    *store.Store
	pki      *pki.PKI
	keys     *serviceaccount.Keys
	listener net.Listener
	metrics  *prometheus.Registry
	webhooks *webhook.Client
	catalog  *catalog.Catalog
	view     *watchcache.View
	rest     *rest.Server
	control  *control.Controllers
	front    *front.Server

	dropDocuments func() // of OpenAPI, when memory is tight

	broken chan error // the first part that breaks while running; capacity 1, later ones are dropped
	undo   []func() error
}

// steps are what starting means, in order. Each registers with onStop what undoes it.
func (p *process) steps() []func(context.Context) error {
	p.began = time.Now()
	p.broken = make(chan error, 1)
	return []func(context.Context) error{
		p.checkAddress,
		p.openDataDir,
		p.openStore,
		p.openCertificates,
		p.listen,
		p.buildAPI,
		p.loadView,
		p.bootstrap,
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
	case <-p.store.Failed():
		return nil // why is what closing it returns
	case err := <-p.broken:
		select {
		case <-p.store.Failed():
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
	dir, cleanup, err := p.config.prepareDataDir()
	if err != nil {
		return err
	}
	p.dir = dir
	p.onStop(func() error { cleanup(); return nil })
	return nil
}

func (p *process) openStore(ctx context.Context) error {
	c := store.Config{Prefix: p.config.EtcdPrefix, Log: p.log}
	if len(p.config.EtcdServers) > 0 {
		c.External = &store.External{
			Endpoints: p.config.EtcdServers, CAFile: p.config.EtcdCAFile, CertFile: p.config.EtcdCertFile,
			KeyFile: p.config.EtcdKeyFile,
		}
	} else {
		c.Embedded = &store.Embedded{
			Dir: filepath.Join(p.dir, "etcd"), NoSync: p.config.Ephemeral,
			ListenClientURL: p.config.EtcdListenClientURL, Quota: p.config.QuotaBackendBytes,
		}
	}
	s, err := store.Open(ctx, c)
	if err != nil {
		return err
	}
	p.store = s
	p.onStop(s.Close)
	return nil
}

func (p *process) openCertificates(context.Context) error {
	c := pki.Config{
		Dir: filepath.Join(p.dir, "pki"), Hosts: []string{p.config.BindAddress}, Log: p.log,
		ServingCertFile: p.config.TLSCertFile, ServingKeyFile: p.config.TLSPrivateKeyFile,
		ClientCAFile: p.config.ClientCAFile,
	}
	wanted, err := parseTLS(p.config)
	if err != nil {
		return err
	}
	c.MinVersion, c.CipherSuites = wanted.MinVersion, wanted.CipherSuites
	if p.config.DataDir == "" {
		c.Dir = "" // nothing would be left to find
	}
	keys, err := pki.Open(c)
	if err != nil {
		return fmt.Errorf("%w: correct the file, or the flag that names it", err)
	}
	p.pki = keys
	p.keys, err = serviceaccount.OpenKeys(serviceaccount.KeyConfig{
		Dir: c.Dir, SigningFile: p.config.ServiceAccountSigningKeyFile, KeyFiles: p.config.ServiceAccountKeyFiles,
		Log: p.log,
	})
	if err != nil {
		return fmt.Errorf("%w: correct the file, or the flag that names it", err)
	}
	if len(p.config.EtcdServers) > 0 && p.config.ServiceAccountSigningKeyFile == "" {
		p.log.Info(
			"tokens of service accounts are signed with a key of this process's own: replicas that share an etcd need --service-account-signing-key-file")
	}
	p.background(func(ctx context.Context) error { p.keys.Run(ctx); return nil })
	p.background(func(ctx context.Context) error { keys.Run(ctx); return nil })
	return nil
}

func (p *process) loadView(ctx context.Context) error {
	if err := p.view.Load(ctx); err != nil {
		return fmt.Errorf("read the store: %w", err)
	}
	p.background(p.view.Run)
	return nil
}

func (p *process) bootstrap(ctx context.Context) error {
	if err := control.Bootstrap(ctx, p.rest); err != nil {
		return err
	}
	if err := p.bootstrapPriorities(ctx); err != nil {
		return err
	}
	port := 0
	if tcp, ok := p.listener.Addr().(*net.TCPAddr); ok {
		port = tcp.Port
	}
	if err := p.control.BootstrapServices(ctx, p.config.serviceRanges(), port); err != nil {
		return err
	}
	p.background(func(ctx context.Context) error { p.control.Keep(ctx, p.config.serviceRanges(), port); return nil })
	p.announce(ctx, port)
	return p.identify(ctx, port)
}

// announceTimeout bounds the first announcement, and the making of priority classes. A webhook that does not answer
// must not keep the server from starting.
const announceTimeout = 5 * time.Second

func (p *process) bootstrapPriorities(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	return control.BootstrapPriorities(ctx, p.rest)
}

// announce makes the server an endpoint of the service "kubernetes", as long as it runs.
func (p *process) announce(ctx context.Context, port int) {
	ip, err := p.config.advertised()
	if err != nil || port == 0 {
		p.log.Info("the service kubernetes gets no endpoint: name one with --advertise-address", "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	presence := &control.EndpointReconciler{Rest: p.rest, Address: ip, Port: port}
	if err := presence.Announce(ctx); err != nil {
		p.log.Warn("the endpoints of the service kubernetes are not up to date", "error", err)
	}
	p.background(func(ctx context.Context) error { presence.Run(ctx); return nil })
}

// identify shows clients by a Lease that the server is there, as long as it runs.
func (p *process) identify(ctx context.Context, port int) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name of this machine: %w", err)
	}
	lease := &control.IdentityLease{Rest: p.rest, Hostname: host}
	if ip, err := p.config.advertised(); err == nil && port != 0 {
		lease.Peer = netip.AddrPortFrom(ip, uint16(port)).String()
	}
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	if err := lease.Begin(ctx); err != nil {
		p.log.Warn("there is no lease that shows this server", "error", err)
	}
	p.background(func(ctx context.Context) error { lease.Run(ctx); return nil })
	return nil
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
