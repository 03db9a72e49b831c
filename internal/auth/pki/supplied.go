package pki

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// supplied is a serving certificate from the user's files.
type supplied struct {
	certFile, keyFile string
	pair
}

func loadSupplied(certFile, keyFile string) (*supplied, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("key of the serving certificate: %w", err)
	}
	p, err := parsePair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("serving certificate %s with key %s: %w", certFile, keyFile, err)
	}
	return &supplied{certFile: certFile, keyFile: keyFile, pair: *p}, nil
}

func (s *supplied) same(o *supplied) bool {
	return bytes.Equal(s.certPEM, o.certPEM) && bytes.Equal(s.keyPEM, o.keyPEM)
}

// WriteServing issues a serving certificate for hosts, besides localhost and the customary names, with a temporary
// authority, and writes base.crt (the certificate, then its authority, for clients to trust) and base.key (mode 0600).
// It creates the directory.
func WriteServing(base string, hosts []string, now time.Time) error {
	authority, err := issueAuthority(nil, now)
	if err != nil {
		return err
	}
	serving, err := issueServing(authority, servingHosts(hosts), now)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		return err
	}
	serving.certPEM = slices.Concat(serving.certPEM, authority.certPEM)
	return serving.write(base)
}
