package pki

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
)

// TLSConfig returns the server's side of TLS: versions and suites as configured, HTTP/2 and HTTP/1.1. Client
// certificates are asked for and not verified here: package authn does, so that a bad one is answered with 401 and not
// with a broken connection. Every handshake uses the certificate that is current then.
func (p *PKI) TLSConfig() *tls.Config {
	config := p.tls.Load().Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return p.tls.Load(), nil }
	return config
}

// ClientRoots returns the authorities whose client certificates are believed. The pool is another one after each
// change.
func (p *PKI) ClientRoots() *x509.CertPool { return p.roots.Load() }

func (c Config) serverTLS(certificate *tls.Certificate, clients *x509.CertPool) *tls.Config {
	return &tls.Config{
		MinVersion:   cmp.Or(c.MinVersion, tls.VersionTLS12),
		CipherSuites: c.CipherSuites,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{*certificate},
		ClientAuth:   tls.RequestClientCert,
		ClientCAs:    clients, // only a hint, by which clients with several certificates choose
	}
}
