package pki

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// TestPersonalKubeconfig checks that the server accepts a person's certificate, with the name, the groups and the
// duration; everything else is the administrator's, except the key.
func TestPersonalKubeconfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := open(t, Config{Dir: dir}, start)
	before := read(t, dir)
	admin := p.Kubeconfig("https://127.0.0.1:6443")
	got, err := PersonalKubeconfig(dir, admin,
		Person{User: "alice", Groups: []string{"dev", "ops"}, Duration: 24 * time.Hour}, start)
	must(t, err)
	config, err := clientcmd.Load(got.Kubeconfig)
	must(t, err)
	user, cluster := config.AuthInfos["alice@bowsprit"], config.Clusters["bowsprit"]
	if len(config.AuthInfos) != 1 || len(config.Contexts) != 1 || user == nil || cluster == nil ||
		config.CurrentContext != "alice@bowsprit" || cluster.Server != "https://127.0.0.1:6443" ||
		string(cluster.CertificateAuthorityData) != string(p.ServerCA()) {
		t.Fatalf("got %s", got.Kubeconfig)
	}
	block, _ := pem.Decode(user.ClientCertificateData)
	cert, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	_, err = cert.Verify(x509.VerifyOptions{
		Roots: p.ClientRoots(), CurrentTime: start, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil || cert.Subject.CommonName != "alice" || cert.IsCA ||
		!slices.Equal(cert.Subject.Organization, []string{"dev", "ops"}) ||
		!cert.NotAfter.Equal(start.Add(24*time.Hour)) || !got.Expires.Equal(cert.NotAfter) {
		t.Errorf("certificate of %s until %s: %v", cert.Subject, cert.NotAfter, err)
	}
	if changed := diff(before, read(t, dir)); len(changed) > 0 {
		t.Errorf("files have changed: %q", changed)
	}
}

// TestPersonalServer checks that another URL keeps the trusted certificates, and that a mismatch with the server's
// certificate is reported.
func TestPersonalServer(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), filepath.Join(t.TempDir(), "given")
	own := open(t, Config{Dir: dir, Hosts: []string{"10.0.0.1"}}, start).Kubeconfig("https://127.0.0.1:6443")
	must(t, WriteServing(base, []string{"api.example.com"}, start))
	given := open(t, Config{Dir: dir, ServingCertFile: base + ".crt", ServingKeyFile: base + ".key"}, start).
		Kubeconfig("https://192.0.2.1:6443")
	for _, test := range []struct {
		name, server string
		admin        []byte
		wantName     string // tls-server-name
		mismatch     bool
	}{
		{name: "a name of its own", server: "https://10.0.0.1", admin: own},
		{name: "another name", server: "https://api.example.com", admin: own, mismatch: true},
		{name: "a name of the user's certificate", server: "https://api.example.com", admin: given},
		{name: "another name than those", server: "https://192.0.2.2", admin: given, wantName: "localhost"},
	} {
		got, err := PersonalKubeconfig(dir, test.admin,
			Person{User: "alice", Duration: time.Hour, Server: test.server}, start)
		must(t, err)
		config, err := clientcmd.Load(got.Kubeconfig)
		must(t, err)
		cluster := config.Clusters["bowsprit"]
		if cluster.Server != test.server || cluster.TLSServerName != test.wantName || got.Mismatch != test.mismatch {
			t.Errorf("%s: server %s, name %q, mismatch %v", test.name, cluster.Server, cluster.TLSServerName,
				got.Mismatch)
		}
	}
}

func TestPersonalErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	admin := open(t, Config{Dir: dir}, start).Kubeconfig("https://127.0.0.1:6443")
	alice := Person{User: "alice", Duration: time.Hour}
	if _, err := PersonalKubeconfig(t.TempDir(), admin, alice, start); !errors.Is(err, ErrNoAuthority) {
		t.Errorf("no authority: %v", err)
	}
	alice.Duration = authorityLife
	if _, err := PersonalKubeconfig(dir, admin, alice, start); err != nil {
		t.Errorf("as long as the authority: %v", err)
	}
	alice.Duration += time.Second
	_, err := PersonalKubeconfig(dir, admin, alice, start)
	if err == nil || !strings.Contains(err.Error(), "before the certificate would") {
		t.Errorf("longer than the authority: %v", err)
	}
	must(t, os.Remove(filepath.Join(dir, "ca.crt")))
	if _, err = PersonalKubeconfig(dir, admin, alice, start); !errors.Is(err, ErrNoAuthority) {
		t.Errorf("the key alone: %v", err)
	}
}

// TestUnprintableNames checks that names with unprintable characters get no certificate, for users and groups.
func TestUnprintableNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	admin := open(t, Config{Dir: dir}, start).Kubeconfig("https://127.0.0.1:6443")
	for _, name := range []string{
		"", "g\nsystem:masters", "a\x00", "\x1b[2J", "a\xff", "\u202eadmin", "a\u200b", "a\u2028b", "a\tb", "\u0085",
	} {
		for _, p := range []Person{{User: name}, {User: "a", Groups: []string{"b", name}}} {
			p.Duration = time.Hour
			if _, err := PersonalKubeconfig(dir, admin, p, start); err == nil {
				t.Errorf("%+q has a certificate", p)
			}
		}
	}
	for _, name := range []string{"a", "system:node:a", "Größe", "日本", "a b", "a,b", `"`, "alice@example.com"} {
		p := Person{User: name, Groups: []string{name}, Duration: time.Hour}
		if _, err := PersonalKubeconfig(dir, admin, p, start); err != nil {
			t.Error(err)
		}
	}
}

// TestShareAuthority checks that a user of a server in memory can be made from the files of its authority alone.
func TestShareAuthority(t *testing.T) {
	t.Parallel()
	p, dir := open(t, Config{}, start), filepath.Join(t.TempDir(), "pki")
	must(t, p.ShareAuthority(dir))
	made, err := PersonalKubeconfig(dir, p.Kubeconfig("https://127.0.0.1:6443"),
		Person{User: "alice", Duration: time.Hour}, start)
	must(t, err)
	config, err := clientcmd.Load(made.Kubeconfig)
	must(t, err)
	block, _ := pem.Decode(config.AuthInfos["alice@bowsprit"].ClientCertificateData)
	cert, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	if _, err := cert.Verify(x509.VerifyOptions{
		Roots: p.ClientRoots(), CurrentTime: start, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]os.FileMode{"": 0o700 | os.ModeDir, "ca.key": 0o600, "ca.crt": 0o600} {
		if stat, err := os.Stat(filepath.Join(dir, name)); err != nil || stat.Mode() != want {
			t.Errorf("%s: %v %v", name, stat.Mode(), err)
		}
	}
}
