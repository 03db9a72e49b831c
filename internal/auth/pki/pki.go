// Package pki manages the certificates of the server: its own authority, the serving certificate, the administrator's
// client certificate, and supplied files that replace them.
//
// It is used before a request exists: package front uses its TLS configuration, package authn its client authorities,
// and the command its kubeconfig. A PKI with a directory keeps its files there (directory 0700, keys 0600, written
// atomically, so that a crash leaves the old file or the new one); without a directory it is in memory, for servers
// inside tests.
//
// Certificates are renewed when two thirds of their life have passed. The authority keeps its key, so that its
// signatures and its clients' trust stay valid. New connections use a renewed or reloaded certificate at once, without
// a restart.
//
// A PKI is safe for concurrent use. Two processes must not share a directory: the caller locks the data directory
// first.
package pki

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// refreshEvery is the interval at which Run checks for expiry and changed files.
const refreshEvery = 10 * time.Second

// lookEvery is the interval of Run's cheaper check for changes of supplied files.
const lookEvery = time.Second

// Config configures a PKI. The zero value is a PKI in memory.
type Config struct {
	Dir string // directory of the files, created if missing; "" keeps everything in memory
	// Hosts lists further names and addresses for the serving certificate (the bind address, the host's name), besides
	// localhost and the customary names of the kubernetes service. Empty and unspecified addresses are ignored.
	Hosts []string

	ServingCertFile, ServingKeyFile string  // supplied serving certificate; both or none
	Named                           []Named // supplied serving certificates for certain names
	ClientCAFile                    string  // further authorities for client certificates
	ProxyCAFile                     string  // authorities of front proxies' certificates
	// ProxyClientCertFile and ProxyClientKeyFile are the server's certificate as a front proxy; both or none. Without
	// them the server issues one, unless ProxyCAFile shows that front proxies have an authority, or NoOwnClients
	// disables own ones.
	ProxyClientCertFile, ProxyClientKeyFile string

	// NoOwnClients disables client certificates of the own authority.
	NoOwnClients bool

	// Announce is how long ServerCA includes the next supplied serving certificate before the server uses it, so that
	// clients learn to trust it first; 0 uses it at once.
	Announce time.Duration

	MinVersion   uint16   // of TLS; 0 means 1.2
	CipherSuites []uint16 // for versions before 1.3; nil means Go's choice

	Now func() time.Time // nil means time.Now
	Log *slog.Logger     // nil logs nothing
}

// PKI is the set of certificates.
type PKI struct {
	config Config

	mu struct {
		sync.Mutex
		authority, serving, admin *pair // serving is nil if supplied
		kubeletClient             *pair // nil until requested
		supplied                  *supplied
		announced                 announcement // of the next supplied
		named                     []*named
		clientCA, proxyCA         []byte // contents of ClientCAFile and ProxyCAFile
		kubeconfigs               []kubeconfigFile
		changed                   chan struct{} // closed and replaced by publishLocked
	}
	proxyClient proxyClient // guarded by mu, except for the current certificate
	opened      []stamp     // of supplied files, from before Open has read them

	tls        atomic.Pointer[tls.Config] // for new connections
	roots      atomic.Pointer[x509.CertPool]
	proxyRoots atomic.Pointer[x509.CertPool]
}

// Open loads the certificates, and issues missing, unusable and expiring ones, and replaces any that lack a host. Its
// errors are one line that names the file.
func Open(c Config) (*PKI, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if (c.ServingCertFile == "") != (c.ServingKeyFile == "") {
		return nil, errors.New("a serving certificate needs both its certificate file and its key file")
	}
	if c.Dir != "" {
		if err := os.MkdirAll(c.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("certificate directory: %w", err)
		}
		if err := os.Chmod(c.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("certificate directory: %w", err)
		}
	}
	p := &PKI{config: c}
	p.opened = stamps(p.userFiles())
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil {
		return nil, err
	}
	if _, err := p.renewLocked(); err != nil {
		return nil, err
	}
	if err := p.openProxyClientLocked(); err != nil {
		return nil, err
	}
	if c.ServingCertFile != "" {
		s, err := loadSupplied(c.ServingCertFile, c.ServingKeyFile)
		if err != nil {
			return nil, err
		}
		p.mu.supplied = s
	}
	for _, n := range c.Named {
		s, err := loadSupplied(n.CertFile, n.KeyFile)
		if err != nil {
			return nil, err
		}
		p.mu.named = append(p.mu.named, &named{supplied: s, names: n.Names})
	}
	for _, f := range p.authorityFilesLocked() {
		data, err := readAuthorities(f.file)
		if err != nil {
			return nil, err
		}
		*f.content = data
	}
	p.publishLocked()
	return p, nil
}

// Refresh renews expiring certificates, reloads changed supplied files, and rewrites kubeconfigs with changed content.
// An unusable supplied file is logged, and the previous one stays in use.
func (p *PKI) Refresh() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	renewed, err := p.renewLocked()
	err = errors.Join(err, p.refreshProxyClientLocked())
	changed := p.reloadLocked() || renewed
	if changed {
		p.publishLocked()
		err = errors.Join(err, p.writeKubeconfigsLocked())
	}
	return err
}

// Changed returns a channel that is closed when the certificates or authorities in use change.
func (p *PKI) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.changed
}

// Run calls Refresh periodically, and when a supplied file has changed, until ctx ends.
func (p *PKI) Run(ctx context.Context) {
	refresh := time.NewTicker(refreshEvery)
	defer refresh.Stop()
	var look <-chan time.Time
	files := p.userFiles()
	if len(files) > 0 {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	seen := p.opened
	for {
		select {
		case <-ctx.Done():
			return
		case <-look:
			now := stamps(files)
			if slices.EqualFunc(now, seen, stamp.same) && !p.announcing() {
				continue
			}
			seen = now
		case <-refresh.C:
		}
		if err := p.Refresh(); err != nil {
			p.config.Log.Error("cannot renew certificates", "error", err)
		}
	}
}

// ServerCA returns, in PEM, the certificates that a client of this server must trust: the own authority, or the
// supplied serving certificates, with the announced ones.
func (p *PKI) ServerCA() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.serverCALocked()
}

func (p *PKI) serverCALocked() []byte {
	switch next := p.mu.announced.next; {
	case next != nil:
		return slices.Concat(p.mu.supplied.certPEM, []byte("\n"), next.certPEM)
	case p.mu.supplied != nil:
		return p.mu.supplied.certPEM
	default:
		return p.mu.authority.certPEM
	}
}

// Admin returns the administrator's client certificate and key in PEM: user kubernetes-admin, group system:masters.
func (p *PKI) Admin() (certPEM, keyPEM []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.admin.certPEM, p.mu.admin.keyPEM
}

// loadLocked reads the own files. Missing certificates stay nil; an unusable leaf counts as missing. An unusable
// authority is an error: replacing it would lock out all of its clients.
func (p *PKI) loadLocked() error {
	if p.config.Dir == "" {
		return nil
	}
	authority, err := loadAuthority(p.file("ca"))
	if err != nil {
		return err
	}
	p.mu.authority = authority
	if authority == nil || authority.cert == nil {
		return nil // any leaves there belong to another authority
	}
	for name, leaf := range map[string]**pair{"apiserver": &p.mu.serving, "admin": &p.mu.admin} {
		if pair, err := loadPair(p.file(name)); err == nil && pair.cert.CheckSignatureFrom(authority.cert) == nil {
			*leaf = pair
		} else if !errors.Is(err, os.ErrNotExist) {
			p.config.Log.Warn("renewing a certificate", "file", p.file(name)+".crt", "error", err)
		}
	}
	return nil
}

// renewLocked issues and writes every own certificate that is missing or due, and reports whether there was one.
func (p *PKI) renewLocked() (renewed bool, err error) {
	now := p.config.Now()
	renew := func(current **pair, name string, due bool, issue func() (*pair, error)) {
		if err != nil || !due {
			return
		}
		next, issueErr := issue()
		if issueErr == nil && p.config.Dir != "" {
			issueErr = next.write(p.file(name))
		}
		if err = issueErr; err == nil {
			*current, renewed = next, true
			p.config.Log.Info("made a certificate", "name", name, "expires", next.cert.NotAfter)
		}
	}
	renew(&p.mu.authority, "ca", p.mu.authority.due(now),
		func() (*pair, error) { return issueAuthority(p.mu.authority, now) })
	if p.config.ServingCertFile == "" {
		hosts := servingHosts(p.config.Hosts)
		renew(&p.mu.serving, "apiserver", p.mu.serving.due(now) || !p.mu.serving.covers(hosts), func() (*pair, error) {
			return issueServing(p.mu.authority, hosts, now)
		})
	}
	renew(&p.mu.admin, "admin", p.mu.admin.due(now), func() (*pair, error) { return issueAdmin(p.mu.authority, now) })
	return renewed, err
}

// reloadLocked reads supplied files again and reports whether one has changed.
func (p *PKI) reloadLocked() (changed bool) {
	current := []**supplied{&p.mu.supplied}
	for _, n := range p.mu.named {
		current = append(current, &n.supplied)
	}
	for _, old := range current {
		if *old == nil {
			continue
		}
		next, err := loadSupplied((*old).certFile, (*old).keyFile)
		if err != nil {
			p.config.Log.Warn("keeping the serving certificate in use", "error", err)
			continue
		}
		if old == &p.mu.supplied {
			var announced bool
			next, announced = p.announceLocked(next)
			changed = changed || announced
		}
		if !next.same(*old) {
			p.config.Log.Info("serving certificate reloaded", "file", next.certFile)
			*old, changed = next, true
		}
	}
	for _, f := range p.authorityFilesLocked() {
		next, err := readAuthorities(f.file)
		switch {
		case err != nil:
			p.config.Log.Warn("keeping the client authorities in use", "error", err)
		case string(next) != string(*f.content):
			p.config.Log.Info("client authorities reloaded", "file", f.file)
			*f.content, changed = next, true
		}
	}
	return changed
}

// publishLocked makes the current certificates visible to new connections and authenticators.
func (p *PKI) publishLocked() {
	if p.mu.changed != nil {
		close(p.mu.changed)
	}
	p.mu.changed = make(chan struct{})
	roots := x509.NewCertPool()
	if !p.config.NoOwnClients {
		roots.AddCert(p.mu.authority.cert)
	}
	roots.AppendCertsFromPEM(p.mu.clientCA)
	p.roots.Store(roots)
	clientCAs := roots
	if p.mu.proxyCA != nil {
		proxies := x509.NewCertPool()
		proxies.AppendCertsFromPEM(p.mu.proxyCA)
		p.proxyRoots.Store(proxies)
		clientCAs = roots.Clone()
		clientCAs.AppendCertsFromPEM(p.mu.proxyCA)
	}
	serving := p.mu.serving
	if p.mu.supplied != nil {
		serving = &p.mu.supplied.pair
	}
	config := p.config.serverTLS(serving.tls, clientCAs)
	if len(p.mu.named) > 0 {
		config.Certificates, config.GetCertificate = nil, byName(p.mu.named, serving.tls)
	}
	p.tls.Store(config)
}

// authorityFile is a file of authorities and where its content is kept.
type authorityFile struct {
	file    string
	content *[]byte
}

func (p *PKI) authorityFilesLocked() []authorityFile {
	var files []authorityFile
	for _, f := range []authorityFile{
		{p.config.ClientCAFile, &p.mu.clientCA}, {p.config.ProxyCAFile, &p.mu.proxyCA},
	} {
		if f.file != "" {
			files = append(files, f)
		}
	}
	return files
}

func (p *PKI) file(name string) string { return filepath.Join(p.config.Dir, name) }

// Files returns the names of the files that a server creates in Config.Dir.
func Files() (names []string) {
	for _, name := range []string{"ca", "apiserver", "admin", "front-proxy-ca", ProxyClientName} {
		names = append(names, name+".crt", name+".key")
	}
	return names
}

// readAuthorities returns the content of a file that contains at least one certificate.
func readAuthorities(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("client authorities: %w", err)
	}
	found := false
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("client authorities: %s: %w", file, err)
		}
		found = true
	}
	if !found {
		return nil, fmt.Errorf("client authorities: %s holds no PEM certificate", file)
	}
	return data, nil
}
