package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPeople runs testdata/people/story.txt, in which people and service accounts get the permissions of their roles,
// and join.txt, in which a node joins by a bootstrap token (the test has made node.key, and the request node.csr). In
// why.txt and stuck.txt the server explains refusals and objects that remain, and sensitive.txt is about fields that
// only some users may see. The scripts need the server's data directory, which they find as "data".
func TestPeople(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"story", "join", "why", "stuck", "sensitive"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runWithData(t, filepath.Join("testdata", "people", name+".txt"))
		})
	}
}

func runWithData(t *testing.T, file string) {
	if reference != "" {
		t.Skip("the story is about commands of bowsprit's")
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	s := &session{server: startServer(t, "--data-dir="+data, withoutAccounts), dir: t.TempDir(),
		env: []string{"BOWSPRIT_DATA_DIR=" + data}}
	if err := os.Symlink(data, filepath.Join(s.dir, "data")); err != nil {
		t.Fatal(err)
	}
	requestAsNode(t, s.dir)
	s.hook = startHook(t, s.dir)
	got := s.run(t, strings.Split(strings.TrimSuffix(string(want), "\n"), "\n"))
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// requestAsNode writes the key of the node one, and its request for a certificate.
func requestAsNode(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:one", Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"node.key": {Type: "EC PRIVATE KEY", Bytes: keyDER}, "node.csr": {Type: "CERTIFICATE REQUEST", Bytes: request},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
