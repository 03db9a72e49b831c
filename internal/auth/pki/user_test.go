package pki

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// TestUserKubeconfig checks the certificate of a user of a PKI in memory.
func TestUserKubeconfig(t *testing.T) {
	t.Parallel()
	p := open(t, Config{}, start)
	content, err := p.UserKubeconfig("https://127.0.0.1:6443",
		Person{User: "alice", Groups: []string{"dev"}, Duration: time.Hour, Server: "https://elsewhere.example.com"})
	must(t, err)
	config, err := clientcmd.Load(content)
	must(t, err)
	if got := config.Clusters[ContextName].Server; got != "https://127.0.0.1:6443" {
		t.Errorf("the server is %s", got)
	}
	block, _ := pem.Decode(config.AuthInfos["alice@bowsprit"].ClientCertificateData)
	cert, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	_, err = cert.Verify(x509.VerifyOptions{
		Roots: p.ClientRoots(), CurrentTime: start, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil || cert.IsCA || cert.Subject.CommonName != "alice" ||
		!slices.Equal(cert.Subject.Organization, []string{"dev"}) || !cert.NotAfter.Equal(start.Add(time.Hour)) {
		t.Errorf("certificate of %s until %s: %v", cert.Subject, cert.NotAfter, err)
	}
}

func TestUserKubeconfigErrors(t *testing.T) {
	t.Parallel()
	p := open(t, Config{NoOwnClients: true}, start)
	if _, err := p.UserKubeconfig("", Person{User: "alice", Duration: time.Hour}); !errors.Is(err, ErrNoOwnClients) {
		t.Errorf("without own clients: %v", err)
	}
	p = open(t, Config{}, start)
	for _, person := range []Person{{Duration: time.Hour}, {User: "a\nb", Duration: time.Hour},
		{User: "alice", Groups: []string{""}, Duration: time.Hour},
		{User: "alice", Duration: 100 * 365 * 24 * time.Hour}} {
		if _, err := p.UserKubeconfig("", person); err == nil {
			t.Errorf("%+v: no error", person)
		}
	}
}
