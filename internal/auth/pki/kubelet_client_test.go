package pki

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"
)

// TestKubeletClient checks that the certificate for kubelets comes from the own authority, is kept, and is renewed in
// time.
func TestKubeletClient(t *testing.T) {
	now := time.Now()
	p, err := Open(Config{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	first := p.KubeletClient()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.ServerCA())
	if _, err := first.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		t.Error(err)
	}
	if s := first.Leaf.Subject; s.CommonName != KubeletClientName ||
		!slices.Equal(s.Organization, []string{"system:masters"}) {
		t.Errorf("the certificate is that of %v", s)
	}
	if p.KubeletClient() != first {
		t.Error("another certificate at each call")
	}
	now = now.Add(leafLife - time.Hour)
	if p.KubeletClient() == first {
		t.Error("a certificate that is about to end stays in use")
	}
	p.config.NoOwnClients = true
	if p.KubeletClient() != nil {
		t.Error("a certificate of an authority that is not believed")
	}
}
