package server

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/front/figures"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/tracing"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/reach"
	"github.com/bowsprit/bowsprit/internal/server/version"
	"github.com/bowsprit/bowsprit/internal/storage/datadir"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/embedded"
	"github.com/bowsprit/bowsprit/internal/storage/store/external"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// opened is the result of the first phase: the files, the store, the keys and the socket of a server.
type opened struct {
	*prepared
	dir      string
	listener net.Listener
	keys     *serviceaccount.Keys
	requests *figures.StoreRequests
	traces   *tracing.Provider // nil without tracing
}

// open is the first phase. It checks the address first, so that a server that cannot listen leaves no files behind.
func (p *prepared) open(ctx context.Context) (*opened, error) {
	o := &opened{prepared: p}
	return o, inOrder(ctx,
		o.checkAddress,
		o.openDataDir,
		o.openEgress,
		o.openTracing,
		o.openStore,
		o.openCertificates,
		o.listen,
	)
}

func (o *opened) openDataDir(context.Context) error {
	dir, cleanup, err := datadir.Prepare(o.config.DataDir, o.log)
	if err != nil {
		return err
	}
	o.onStop(func() error { cleanup(); return nil })
	o.dir = dir
	if o.config.DataDir == "" {
		return nil
	}
	o.host.Dir = dir
	return datadir.MarkFormat(dir, version.Get().Bowsprit)
}

func (o *opened) openStore(ctx context.Context) error {
	defer part.NoteSlow(o.log, "open the store", "dir", o.dir, "etcd", strings.Join(o.config.Etcd.Servers, ","))()
	requests := figures.NewStoreRequests()
	o.host.Metrics.MustRegister(requests)
	o.requests = requests
	c := store.Config{Prefix: o.config.Etcd.Prefix, Log: o.log, Observe: o.observeStore}
	if o.traces != nil {
		c.Tracing = o.traces
	}
	if len(o.config.Etcd.Servers) > 0 {
		c.Etcd = external.Config{
			Endpoints: o.config.Etcd.Servers, CAFile: o.config.Etcd.CAFile, CertFile: o.config.Etcd.CertFile,
			KeyFile: o.config.Etcd.KeyFile, Dial: o.host.Egress.Selected(egress.Etcd),
		}
	} else {
		etcd := embedded.Config{
			Dir: filepath.Join(o.dir, "etcd"), NoSync: o.config.Ephemeral,
			ListenClientURL: o.config.Etcd.ListenClientURL, Quota: o.config.Etcd.QuotaBackendBytes,
			History: cluster.History(o.config.Workloads.Simulation != nil),
		}
		if o.config.Ephemeral && o.behind != nil {
			// Clients of the server in front outlive this one. No earlier start has given out so large a revision.
			etcd.FirstRevision = o.host.Started.UnixMicro()
		}
		c.Etcd = etcd
	}
	s, err := store.Open(ctx, c)
	if err != nil {
		return err
	}
	o.host.Store = s
	if u := o.config.Etcd.ListenClientURL; u != "" {
		o.log.Warn("the embedded etcd is open to every process of this machine, without TLS and without a password: each "+
			"may read and change all objects", "url", u)
	}
	o.onStop(s.Close)
	return s.MarkFormat(ctx, version.Get().Bowsprit)
}

// announceServing is the time that the server in front has to learn the next serving certificate of an extension API
// server. The server in front needs milliseconds; the rest is for a busy machine.
const announceServing = 5 * time.Second

func (o *opened) openCertificates(ctx context.Context) error {
	c := pki.Config{
		Dir: filepath.Join(o.dir, "pki"), Log: o.log,
		Hosts:           slices.Concat(reach.Hosts(&o.config), o.behind.ServingHosts()),
		ServingCertFile: o.config.TLS.CertFile, ServingKeyFile: o.config.TLS.PrivateKeyFile,
		ClientCAFile: o.config.Authentication.ClientCAFile,
		ProxyCAFile:  o.config.Authentication.RequestHeader.ClientCAFile,
		NoOwnClients: o.config.Authentication.NoOwnClients,

		ProxyClientCertFile: o.config.Aggregation.ProxyClientCertFile,
		ProxyClientKeyFile:  o.config.Aggregation.ProxyClientKeyFile,
	}
	for _, text := range o.config.TLS.SNICertKeys {
		named, err := pki.ParseNamed(text)
		if err != nil {
			return err
		}
		c.Named = append(c.Named, named)
	}
	if o.behind != nil {
		c.Announce = announceServing
	}
	wanted, err := config.ParseTLS(&o.config.TLS)
	if err != nil {
		return err
	}
	c.MinVersion, c.CipherSuites = wanted.MinVersion, wanted.CipherSuites
	if o.config.DataDir == "" {
		c.Dir = "" // the directory is temporary
	}
	keys, err := pki.Open(c)
	if err != nil {
		return fmt.Errorf("%w: correct the file, or the flag that names it", err)
	}
	o.host.Certificates = keys
	if c.Dir == "" { // for the commands that make users of this server
		if err := keys.ShareAuthority(filepath.Join(o.dir, "pki")); err != nil {
			return err
		}
	}
	if err := o.checkProxies(); err != nil {
		return err
	}
	if err := o.openKeys(ctx, c.Dir); err != nil {
		return err
	}
	o.background(func(ctx context.Context) error { o.keys.Run(ctx); return nil })
	o.background(func(ctx context.Context) error { keys.Run(ctx); return nil })
	return nil
}

// openKeys opens the keys of service accounts. dir holds the server's own keys.
func (o *opened) openKeys(ctx context.Context, dir string) (err error) {
	c := &o.config.ServiceAccounts
	keys := serviceaccount.KeyConfig{
		Dir: dir, SigningFile: c.SigningKeyFile, KeyFiles: c.KeyFiles, Log: o.log, Metrics: o.host.Metrics,
	}
	if c.SigningEndpoint != "" {
		o.keys, err = serviceaccount.OpenExternal(ctx, c.SigningEndpoint, keys)
		if err != nil {
			return fmt.Errorf("%w: see that it runs, or correct --service-account-signing-endpoint", err)
		}
		if longest := o.keys.MaxLife(); c.MaxTokenExpiration > longest {
			return fmt.Errorf("service-account-max-token-expiration cannot be set longer than the token expiration supported by service-account-signing-endpoint: %s > %s",
				c.MaxTokenExpiration, longest)
		}
		return nil
	}
	if o.keys, err = serviceaccount.OpenKeys(keys); err != nil {
		return fmt.Errorf("%w: correct the file, or the flag that names it", err)
	}
	if len(o.config.Etcd.Servers) > 0 && c.SigningKeyFile == "" {
		o.log.Info(
			"tokens of service accounts are signed with a key of this process's own: replicas that share an etcd need --service-account-signing-key-file")
	}
	return nil
}
