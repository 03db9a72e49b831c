package standin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/test/utils"
)

// tb is what is needed of a testing.T or its like.
type tb interface {
	Helper()
	Fatal(args ...any)
}

var _ tb = (testing.TB)(nil)

// ServiceAccountKey makes a key for tokens of service accounts, with which tests sign tokens themselves.
func ServiceAccountKey(t tb, dir string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "service-account.key")
	writeKey(t, file, key)
	return file
}

// CA makes an authority in dir/NAME.crt.
func CA(t tb, dir, name string) (string, *x509.Certificate, *rsa.PrivateKey) {
	t.Helper()
	key, err := utils.NewPrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	return WriteCA(t, dir, name, authority), authority, key
}

// WriteCA writes an authority to dir/NAME.crt.
func WriteCA(t tb, dir, name string, authority *x509.Certificate) string {
	t.Helper()
	file := filepath.Join(dir, name+".crt")
	if err := os.WriteFile(file, utils.EncodeCertPEM(authority), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// ClientCert makes a certificate for a client, and returns its file and that of its key.
func ClientCert(t tb, dir, name string, authority *x509.Certificate, key *rsa.PrivateKey) (string, string) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, SerialNumber: big.NewInt(2),
		NotBefore: authority.NotBefore, NotAfter: time.Now().Add(10_000 * time.Hour),
		KeyUsage:    x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}, authority, own.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	writeKey(t, keyFile, own)
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(certFile, encoded, 0o644); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile
}

func writeKey(t tb, file string, key *ecdsa.PrivateKey) {
	t.Helper()
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
}
