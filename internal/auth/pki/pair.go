package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/durable"
)

// pair is a certificate and its key, immutable. cert is nil only for an authority with a key but no certificate.
type pair struct {
	certPEM, keyPEM []byte
	cert            *x509.Certificate
	key             *ecdsa.PrivateKey // nil for a supplied pair
	tls             *tls.Certificate
}

func newPair(der []byte, key *ecdsa.PrivateKey) (*pair, error) {
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return parsePair(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	)
}

func parsePair(certPEM, keyPEM []byte) (*pair, error) {
	certificate, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	key, _ := certificate.PrivateKey.(*ecdsa.PrivateKey)
	return &pair{certPEM: certPEM, keyPEM: keyPEM, cert: certificate.Leaf, key: key, tls: &certificate}, nil
}

// due reports whether the certificate must be issued (again) at now: two thirds of its life have passed, or it is not
// valid yet according to the clock.
func (p *pair) due(now time.Time) bool {
	if p == nil || p.cert == nil {
		return true
	}
	life := p.cert.NotAfter.Sub(p.cert.NotBefore)
	return now.Before(p.cert.NotBefore) || !now.Before(p.cert.NotAfter.Add(-life/3))
}

// covers reports whether the certificate is valid for each of hosts.
func (p *pair) covers(hosts []string) bool {
	if p == nil {
		return false
	}
	for _, host := range hosts {
		if p.cert.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

// write stores the pair as base.crt and base.key. The key comes first, and a leaf always has a new key: a crash between
// the two leaves a mismatched pair, which is issued again.
func (p *pair) write(base string) error {
	if err := durable.WriteFile(base+".key", p.keyPEM); err != nil {
		return err
	}
	return durable.WriteFile(base+".crt", p.certPEM)
}

// loadPair reads base.crt and base.key. Errors wrap os.ErrNotExist if one of them is missing.
func loadPair(base string) (*pair, error) {
	certPEM, err := os.ReadFile(base + ".crt")
	if err != nil {
		return nil, err
	}
	keyPEM, err := readKey(base + ".key")
	if err != nil {
		return nil, err
	}
	p, err := parsePair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	if p.key == nil {
		return nil, errors.New("not an ECDSA key")
	}
	return p, nil
}

// loadAuthority is loadPair for the authority. It returns nil, nil if there is none, and a pair with only a key if the
// first start ended before the certificate was written.
func loadAuthority(base string) (*pair, error) {
	p, err := loadPair(base)
	if err == nil {
		if !p.cert.IsCA {
			return nil, fmt.Errorf("%s.crt is not the certificate of an authority", base)
		}
		return p, nil
	}
	_, certErr := os.Lstat(base + ".crt")
	keyPEM, keyErr := readKey(base + ".key")
	switch {
	case errors.Is(certErr, os.ErrNotExist) && errors.Is(keyErr, os.ErrNotExist):
		return nil, nil
	case errors.Is(certErr, os.ErrNotExist) && keyErr == nil:
		block, _ := pem.Decode(keyPEM)
		if block == nil {
			return nil, fmt.Errorf("%s.key holds no PEM key", base)
		}
		key, err := x509.ParseECPrivateKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s.key: %w", base, err)
		}
		return &pair{key: key, keyPEM: keyPEM}, nil
	}
	if system := new(fs.PathError); errors.As(err, &system) && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("authority %s.crt and %s.key: %w (let the user of the server read and write them)", base,
			base, err)
	}
	return nil,
		fmt.Errorf("authority %s.crt and %s.key: %w (restore both, or delete both to begin with a new authority)", base,
			base, err)
}

// readKey reads one of the server's own key files and removes other users' access to it.
func readKey(file string) ([]byte, error) {
	stat, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if stat.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(file, 0o600); err != nil {
			return nil, err
		}
	}
	return os.ReadFile(file)
}
