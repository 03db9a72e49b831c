package pki

import (
	"bytes"
	"fmt"
	"os"
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
