package pki

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// ProxyClientName is the common name of the server's own certificate as a front proxy, as in kubeadm.
const ProxyClientName = "front-proxy-client"

// proxyClient is the certificate that lets the server name users in headers to aggregated servers: the supplied one, or
// one of an authority for this purpose only.
type proxyClient struct {
	certFile, keyFile string // supplied; "" for an own one
	authority         *pair  // nil if supplied
	current           atomic.Pointer[tls.Certificate]
}

// ProxyClient returns the server's certificate as a front proxy; nil if it has none. It may change later.
func (p *PKI) ProxyClient() *tls.Certificate { return p.proxyClient.current.Load() }

// OwnProxyCA returns, in PEM, the authority of the server's own certificate as a front proxy; nil if it uses a supplied
// one, or none.
func (p *PKI) OwnProxyCA() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proxyClient.authority == nil {
		return nil
	}
	return p.proxyClient.authority.certPEM
}

// openProxyClientLocked loads the certificate, or issues it if it is missing.
func (p *PKI) openProxyClientLocked() error {
	c := &p.proxyClient
	c.certFile, c.keyFile = p.config.ProxyClientCertFile, p.config.ProxyClientKeyFile
	if (c.certFile == "") != (c.keyFile == "") {
		return errors.New("the certificate of the front proxy needs both its certificate file and its key file")
	}
	switch {
	case c.certFile != "":
		return c.read()
	case p.config.ProxyCAFile != "" || p.config.NoOwnClients:
		return nil // front proxies have an authority already, and the operator has its key
	}
	if p.config.Dir != "" {
		authority, err := loadAuthority(p.file("front-proxy-ca"))
		if err != nil {
			return err
		}
		c.authority = authority
		leaf, err := loadPair(p.file(ProxyClientName))
		if err == nil && authority != nil && authority.cert != nil &&
			leaf.cert.CheckSignatureFrom(authority.cert) == nil {
			c.current.Store(leaf.tls)
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			p.config.Log.Warn("renewing a certificate", "file", p.file(ProxyClientName)+".crt", "error", err)
		}
	}
	return p.refreshProxyClientLocked()
}

// refreshProxyClientLocked reloads supplied files, or renews expiring certificates.
func (p *PKI) refreshProxyClientLocked() error {
	c, now := &p.proxyClient, p.config.Now()
	if c.certFile != "" {
		if err := c.read(); err != nil {
			p.config.Log.Warn("keeping the front proxy's certificate in use", "error", err)
		}
		return nil
	}
	if p.config.ProxyCAFile != "" || p.config.NoOwnClients {
		return nil
	}
	write := func(made *pair, name string, err error) error {
		if err == nil && p.config.Dir != "" {
			err = made.write(p.file(name))
		}
		return err
	}
	if c.authority.due(now) {
		authority, err := issueAuthority(c.authority, now)
		if err := write(authority, "front-proxy-ca", err); err != nil {
			return err
		}
		c.authority = authority
	}
	if current := c.current.Load(); current == nil || (&pair{cert: current.Leaf}).due(now) {
		leaf, err := issueLeaf(&x509.Certificate{
			Subject:     pkix.Name{CommonName: ProxyClientName},
			NotAfter:    now.Add(leafLife),
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}, c.authority, now)
		if err := write(leaf, ProxyClientName, err); err != nil {
			return err
		}
		c.current.Store(leaf.tls)
	}
	return nil
}

// read reads supplied files. After an error the current certificate stays.
func (c *proxyClient) read() error {
	certPEM, err := os.ReadFile(c.certFile)
	if err != nil {
		return fmt.Errorf("certificate of the front proxy: %w", err)
	}
	keyPEM, err := os.ReadFile(c.keyFile)
	if err != nil {
		return fmt.Errorf("key of the front proxy's certificate: %w", err)
	}
	read, err := parsePair(certPEM, keyPEM)
	if err != nil {
		return fmt.Errorf("certificate of the front proxy %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	if now := c.current.Load(); now == nil || !now.Leaf.Equal(read.cert) {
		c.current.Store(read.tls)
	}
	return nil
}
