package pki

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
)

// TLSConfig returns the server's TLS configuration: versions and suites as configured, HTTP/2 and HTTP/1.1. Client
// certificates are requested but not verified here: package authn verifies them, so that an invalid one gets a 401, not
// a broken connection. Every handshake uses the certificate that is current then.
func (p *PKI) TLSConfig() *tls.Config {
	config := p.tls.Load().Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return p.tls.Load(), nil }
	return config
}

// ClientRoots returns the authorities of accepted client certificates. The pool is replaced at each change.
func (p *PKI) ClientRoots() *x509.CertPool { return p.roots.Load() }

func (c Config) serverTLS(certificate *tls.Certificate, clients *x509.CertPool) *tls.Config {
	return &tls.Config{
		MinVersion:   cmp.Or(c.MinVersion, tls.VersionTLS12),
		CipherSuites: c.CipherSuites,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{*certificate},
		ClientAuth:   tls.RequestClientCert,
		ClientCAs:    clients, // only a hint for clients with several certificates
	}
}

// ProxyRoots returns the authorities of front proxies, nil if there are none. The pool is replaced at each change.
func (p *PKI) ProxyRoots() *x509.CertPool { return p.proxyRoots.Load() }

// ClientCA returns, in PEM, the authorities of accepted client certificates, the own one first.
func (p *PKI) ClientCA() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.config.NoOwnClients {
		return p.mu.clientCA
	}
	return slices.Concat(p.mu.authority.certPEM, p.mu.clientCA)
}

// ProxyCA returns, in PEM, the authorities of front proxies, nil without any.
func (p *PKI) ProxyCA() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.proxyCA
}

// ProxiesOverlap reports whether an authority of front proxies also signs the certificates of other clients.
func (p *PKI) ProxiesOverlap() bool {
	clients := map[string]bool{}
	for _, der := range certificates(p.ClientCA()) {
		clients[string(der)] = true
	}
	return slices.ContainsFunc(certificates(p.ProxyCA()), func(der []byte) bool { return clients[string(der)] })
}

// certificates returns the DER bytes of the certificates in PEM.
func certificates(data []byte) [][]byte {
	var all [][]byte
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return all
		}
		if block.Type == "CERTIFICATE" {
			all = append(all, block.Bytes)
		}
	}
}
