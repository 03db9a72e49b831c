// Package authority signs certificates for tests.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates that are valid for an hour, for servers and for clients.
type Authority struct {
	// CA is its own certificate, PEM, and Pool contains it.
	CA   []byte
	Pool *x509.CertPool

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// New creates an authority.
func New(t testing.TB) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &Authority{key: key, Pool: x509.NewCertPool()}
	a.certificate = template("test authority")
	a.certificate.IsCA, a.certificate.BasicConstraintsValid = true, true
	a.certificate.KeyUsage = x509.KeyUsageCertSign
	a.CA = a.sign(t, a.certificate, key)
	a.Pool.AppendCertsFromPEM(a.CA)
	return a
}

// PEM returns a certificate for a host name, user name or IP address, and its key. organizations are the user's groups.
func (a *Authority) PEM(t testing.TB, name string, organizations ...string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := template(name)
	of.Subject.Organization = organizations
	of.KeyUsage = x509.KeyUsageDigitalSignature
	of.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if ip := net.ParseIP(name); ip != nil {
		of.IPAddresses = []net.IP{ip}
	} else {
		of.DNSNames = []string{name}
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return a.sign(t, of, private), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// Pair is PEM for crypto/tls.
func (a *Authority) Pair(t testing.TB, name string) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(a.PEM(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// Files writes a certificate for a name, its key, and the authority's certificate into files of a directory.
func (a *Authority) Files(t testing.TB, name string, organizations ...string) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	ca, cert, key = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	certPEM, keyPEM := a.PEM(t, name, organizations...)
	for file, data := range map[string][]byte{ca: a.CA, cert: certPEM, key: keyPEM} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return ca, cert, key
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(time.Hour),
	}
}

func (a *Authority) sign(t testing.TB, of *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, of, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
