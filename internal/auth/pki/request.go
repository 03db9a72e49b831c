package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"time"

	"github.com/bowsprit/bowsprit/internal/net/foreign/publickey"
)

// SignRequest returns, in PEM, a certificate of the own authority for the key in r, after checking that the requester
// has that key. template returns all other fields, given the authority's expiry; the serial number is filled in.
func (p *PKI) SignRequest(
	r *x509.CertificateRequest, template func(end time.Time) (*x509.Certificate, error),
) ([]byte, error) {
	p.mu.Lock()
	authority := p.mu.authority
	p.mu.Unlock()
	return signRequest(authority.cert, authority.key, r, template)
}

// Authority is another signing authority: the files of its certificate and its key, PEM.
type Authority struct{ CertFile, KeyFile string }

// SignRequest is PKI.SignRequest for this authority. The files are read each time, so changes apply at once.
func (a Authority) SignRequest(
	r *x509.CertificateRequest, template func(end time.Time) (*x509.Certificate, error),
) ([]byte, error) {
	certificate, key, err := a.load()
	if err != nil {
		return nil, err
	}
	return signRequest(certificate, key, r, template)
}

// Check returns the error that keeps the authority from signing.
func (a Authority) Check() error {
	_, _, err := a.load()
	return err
}

func (a Authority) load() (*x509.Certificate, crypto.Signer, error) {
	certPEM, err := os.ReadFile(a.CertFile)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err := os.ReadFile(a.KeyFile)
	if err != nil {
		return nil, nil, err
	}
	both, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, nil, fmt.Errorf("%s with the key %s: %w", a.CertFile, a.KeyFile, err)
	}
	key, ok := both.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("%s: %w", a.KeyFile, errCannotSign)
	}
	return both.Leaf, key, nil
}

var errCannotSign = errors.New("the key cannot sign")

func signRequest(
	authority *x509.Certificate, key crypto.Signer, r *x509.CertificateRequest,
	template func(end time.Time) (*x509.Certificate, error),
) ([]byte, error) {
	if err := publickey.CheckSignature(r); err != nil {
		return nil, fmt.Errorf("unable to verify certificate request signature: %w", err)
	}
	certificate, err := template(authority.NotAfter)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	certificate.SerialNumber = serial.Add(serial, big.NewInt(1))
	der, err := x509.CreateCertificate(rand.Reader, certificate, authority, r.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate %s: %w", certificate.Subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
