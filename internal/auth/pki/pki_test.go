package pki

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// open opens a PKI at the given time.
func open(t *testing.T, c Config, now time.Time) *PKI {
	t.Helper()
	c.Now = func() time.Time { return now }
	p, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func leaf(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("no PEM in %q", data)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// serves returns the certificate that a handshake sees, verified for host as of now.
func serves(t *testing.T, p *PKI, host string, now time.Time) *x509.Certificate {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.ServerCA())
	clientEnd, serverEnd := net.Pipe()
	defer clientEnd.Close()
	defer serverEnd.Close()
	done := make(chan error, 1)
	go func() {
		server := tls.Server(serverEnd, p.TLSConfig())
		done <- server.HandshakeContext(t.Context())
	}()
	client := tls.Client(clientEnd,
		&tls.Config{
			RootCAs: roots, ServerName: host, Time: func() time.Time { return now }, NextProtos: []string{"h2"},
		})
	if err := client.HandshakeContext(t.Context()); err != nil {
		t.Fatalf("handshake for %s: %v", host, err)
	}
	state := client.ConnectionState()
	if state.NegotiatedProtocol != "h2" {
		t.Errorf("protocol %q", state.NegotiatedProtocol)
	}
	clientEnd.Close()
	<-done
	return state.PeerCertificates[0]
}

func TestInMemory(t *testing.T) {
	t.Parallel()
	p := open(t, Config{Hosts: []string{"example.internal", "10.1.2.3", "0.0.0.0", "::", "", "[fe80::1]"}}, start)
	for _, host := range []string{
		"localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local",
		"example.internal", "10.1.2.3", "fe80::1",
	} {
		serves(t, p, host, start)
	}
	certPEM, keyPEM := p.Admin()
	if _, err := tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Error(err)
	}
	admin := leaf(t, certPEM)
	if admin.Subject.CommonName != "kubernetes-admin" ||
		!slices.Equal(admin.Subject.Organization, []string{"system:masters"}) {
		t.Errorf("admin is %v", admin.Subject)
	}
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := admin.Verify(x509.VerifyOptions{
		Roots: p.ClientRoots(), CurrentTime: start, KeyUsages: usage,
	}); err != nil {
		t.Error(err)
	}
	if _, err := serves(t, p, "localhost",
		start).Verify(x509.VerifyOptions{Roots: p.ClientRoots(), CurrentTime: start, KeyUsages: usage}); err == nil {
		t.Error("the serving certificate can be used as a client's")
	}
}

func TestFilesAreKeptAndPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data", "pki")
	first := open(t, Config{Dir: dir}, start)
	before := read(t, dir)
	if len(before) != 10 { // pairs of two authorities, the server, the administrator and the front proxy
		t.Fatalf("files %v", before)
	}
	for name := range before {
		stat, err := os.Stat(filepath.Join(dir, name))
		if err != nil || stat.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", name, stat.Mode(), err)
		}
	}
	if stat, err := os.Stat(dir); err != nil || stat.Mode().Perm() != 0o700 {
		t.Errorf("directory has mode %v, %v", stat.Mode(), err)
	}

	// A readable key is made private again; nothing else changes.
	if err := os.Chmod(filepath.Join(dir, "ca.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	second := open(t, Config{Dir: dir}, start.Add(24*time.Hour))
	if stat, _ := os.Stat(filepath.Join(dir, "ca.key")); stat.Mode().Perm() != 0o600 {
		t.Errorf("ca.key has mode %v", stat.Mode())
	}
	if changed := diff(before, read(t, dir)); len(changed) > 0 {
		t.Errorf("a restart changed %v", changed)
	}
	if !bytes.Equal(first.ServerCA(), second.ServerCA()) {
		t.Error("the authority changed")
	}
}

func TestReopenCreatesMissingFiles(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		damage  func(dir string) error
		hosts   []string
		later   time.Duration
		changed []string
	}{
		{name: "nothing"},
		{name: "leaf half way", later: leafLife / 2},
		{
			name: "leaves due", later: leafLife * 3 / 4,
			changed: []string{"admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "front-proxy-client.crt",
				"front-proxy-client.key"},
		},
		{
			name: "authority due", later: authorityLife * 3 / 4,
			changed: []string{"admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "ca.crt",
				"front-proxy-ca.crt", "front-proxy-client.crt", "front-proxy-client.key"},
		},
		{
			name: "clock set back", later: -48 * time.Hour,
			changed: []string{"admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "ca.crt",
				"front-proxy-ca.crt", "front-proxy-client.crt", "front-proxy-client.key"},
		},
		{name: "new host", hosts: []string{"10.0.0.9"}, changed: []string{"apiserver.crt", "apiserver.key"}},
		{name: "no admin key", damage: remove("admin.key"), changed: []string{"admin.crt", "admin.key"}},
		{
			name: "key of another crash", damage: copyFile("admin.key", "apiserver.key"),
			changed: []string{"apiserver.crt", "apiserver.key"},
		},
		{
			name: "garbage", damage: write("apiserver.crt", "garbage"),
			changed: []string{"apiserver.crt", "apiserver.key"},
		},
		{
			name: "authority's certificate lost", damage: remove("ca.crt"),
			changed: []string{"admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "ca.crt"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			open(t, Config{Dir: dir}, start)
			before := read(t, dir)
			if tc.damage != nil {
				if err := tc.damage(dir); err != nil {
					t.Fatal(err)
				}
			}
			now := start.Add(tc.later)
			p := open(t, Config{Dir: dir, Hosts: tc.hosts}, now)
			if changed := diff(before, read(t, dir)); !slices.Equal(changed, tc.changed) {
				t.Errorf("changed %v, want %v", changed, tc.changed)
			}
			serves(t, p, "localhost", now)
		})
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, write("garbage", "garbage")(dir))
	other := open(t, Config{Dir: filepath.Join(dir, "other")}, start)
	_ = other
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, tc := range []struct {
		name   string
		damage func(dir string) error
		config Config
		want   string
	}{
		{"authority's key lost", remove("ca.key"), Config{},
			"no such file or directory (restore both, or delete both to begin with a new authority)"},
		{"authority garbage", write("ca.crt", "garbage"), Config{}, "failed to find any PEM data"},
		{"authority of another server", copyFile("admin.key", "ca.key"), Config{},
			"private key does not match public key"},
		{"half of a serving certificate", nil, Config{ServingCertFile: in("garbage")}, "needs both"},
		{"no serving certificate", nil, Config{ServingCertFile: in("none"), ServingKeyFile: in("none")},
			"serving certificate: open " + in("none") + ": no such file"},
		{"garbage serving certificate", nil, Config{ServingCertFile: in("garbage"), ServingKeyFile: in("garbage")},
			"failed to find any PEM data"},
		{"foreign key", nil, Config{ServingCertFile: in("other/admin.crt"), ServingKeyFile: in("other/ca.key")},
			"does not match"},
		{"no client authorities", nil, Config{ClientCAFile: in("none")}, "client authorities: open " + in("none")},
		{"garbage client authorities", nil, Config{ClientCAFile: in("garbage")}, "holds no PEM certificate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, Config{Dir: dir}, start)
			if tc.damage != nil {
				must(t, tc.damage(dir))
			}
			tc.config.Dir = dir
			tc.config.Now = func() time.Time { return start }
			_, err := Open(tc.config)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// Nine months pass: connections and the kubeconfig get a new certificate, and the authority stays the same.
func TestRunRenews(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var passed atomic.Int64 // advances the clock: months of ticks would take seconds even here
		p, err := Open(Config{Dir: dir, Now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }})
		if err != nil {
			t.Fatal(err)
		}
		kubeconfig := filepath.Join(dir, "sub", "kubeconfig")
		must(t, p.WriteKubeconfig(kubeconfig, "https://127.0.0.1:6443"))
		before, err := os.ReadFile(kubeconfig)
		must(t, err)
		authority := string(p.ServerCA())
		admin, _ := p.Admin()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Run(ctx) }()
		config := p.TLSConfig() // a listener holds it for its whole life
		seen := func() *x509.Certificate {
			c, err := config.GetConfigForClient(nil)
			must(t, err)
			return c.Certificates[0].Leaf
		}
		first := seen()

		time.Sleep(10 * refreshEvery)
		synctest.Wait()
		if !first.Equal(seen()) {
			t.Error("renewed without need")
		}
		passed.Store(int64(leafLife * 3 / 4))
		time.Sleep(refreshEvery)
		synctest.Wait()
		second := seen()
		if first.Equal(second) || !second.NotAfter.After(first.NotAfter) {
			t.Errorf("the serving certificate was not renewed: %v, %v", first.NotAfter, second.NotAfter)
		}
		if now, _ := p.Admin(); bytes.Equal(now, admin) {
			t.Error("the admin certificate was not renewed")
		}
		after, err := os.ReadFile(kubeconfig)
		must(t, err)
		if bytes.Equal(before, after) || !bytes.Equal(after, p.Kubeconfig("https://127.0.0.1:6443")) {
			t.Error("the kubeconfig was not written again")
		}
		if string(p.ServerCA()) != authority {
			t.Error("the authority changed")
		}
		cancel()
		<-done
	})
}

func TestSuppliedFilesAreReloaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	one := open(t, Config{Dir: in("one"), Hosts: []string{"a.example"}}, start)
	two := open(t, Config{Dir: in("two"), Hosts: []string{"a.example"}}, start)
	install := func(from string) {
		t.Helper()
		for source, target := range map[string]string{
			"apiserver.crt": "tls.crt", "apiserver.key": "tls.key", "ca.crt": "clients.crt",
		} {
			data, err := os.ReadFile(filepath.Join(dir, from, source))
			must(t, err)
			must(t, os.WriteFile(in(target), data, 0o600))
		}
	}
	install("one")
	p := open(t, Config{ServingCertFile: in("tls.crt"), ServingKeyFile: in("tls.key"), ClientCAFile: in("clients.crt")},
		start)
	verifies := func(other *PKI) bool {
		certPEM, _ := other.Admin()
		_, err := leaf(t,
			certPEM).Verify(x509.VerifyOptions{
			Roots: p.ClientRoots(), CurrentTime: start, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		})
		return err == nil
	}
	served := serves(t, p, "a.example", start)
	if !served.Equal(leaf(t, mustRead(t, in("one/apiserver.crt")))) || !verifies(one) || verifies(two) || !verifies(p) {
		t.Errorf("first files: serving %v, clients one %v, two %v, own %v", served.Subject, verifies(one),
			verifies(two), verifies(p))
	}

	// Partially written files change nothing.
	roots := p.ClientRoots()
	must(t, os.WriteFile(in("tls.crt"), []byte("-----BEGIN"), 0o600))
	must(t, os.WriteFile(in("clients.crt"), nil, 0o600))
	must(t, p.Refresh())
	if !serves(t, p, "a.example", start).Equal(served) || p.ClientRoots() != roots {
		t.Error("unusable files were used")
	}

	install("two")
	before := p.Changed()
	must(t, p.Refresh())
	select {
	case <-before:
	default:
		t.Error("nothing says that another file is in use")
	}
	if !serves(t, p, "a.example", start).Equal(leaf(t, mustRead(t, in("two/apiserver.crt")))) || verifies(one) ||
		!verifies(two) || !verifies(p) {
		t.Error("changed files were not used")
	}
	kubeconfig := string(p.Kubeconfig("https://10.9.9.9:1"))
	if !strings.Contains(kubeconfig, `tls-server-name: "localhost"`) {
		t.Errorf("kubeconfig without a server name:\n%s", kubeconfig)
	}
	if strings.Contains(string(p.Kubeconfig("https://a.example:1")), "tls-server-name") {
		t.Error("kubeconfig with a needless server name")
	}
}

func remove(name string) func(string) error {
	return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
}

func write(name, content string) func(string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600) }
}

func copyFile(from, to string) func(string) error {
	return func(dir string) error {
		data, err := os.ReadFile(filepath.Join(dir, from))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, to), data, 0o600)
	}
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		files[e.Name()] = string(mustRead(t, filepath.Join(dir, e.Name())))
	}
	return files
}

func diff(before, after map[string]string) []string {
	var changed []string
	for name, content := range after {
		if before[name] != content {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	return data
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func BenchmarkOpenInMemory(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(Config{}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestWriteServing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "here")
	base := filepath.Join(dir, "apiserver")
	cert, key := base+".crt", base+".key"
	if err := WriteServing(base, []string{"0.0.0.0", "192.0.2.7"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v, %v", info, err)
	}
	s, err := loadSupplied(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(s.certPEM)
	for _, host := range []string{"192.0.2.7", "127.0.0.1", "localhost", "kubernetes.default.svc"} {
		if _, err := s.cert.Verify(x509.VerifyOptions{Roots: trust, DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := WriteServing(filepath.Join(cert, "below", "a"), nil, time.Now()); err == nil {
		t.Error("made a certificate below a file")
	}
}
