package pki

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestParseNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Named{
		"a.crt,a.key":               {CertFile: "a.crt", KeyFile: "a.key"},
		" a.crt , a.key : x, *.y.z": {CertFile: "a.crt", KeyFile: "a.key", Names: []string{"x", "*.y.z"}},
	} {
		got, err := ParseNamed(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "a.crt", "a.crt,", ",a.key", "a.crt,a.key,b", "a.crt,a.key:", "a.crt,a.key:x:y"} {
		if n, err := ParseNamed(bad); err == nil {
			t.Errorf("%q: %+v", bad, n)
		}
	}
}

// dialled is a connection to an address.
type dialled struct {
	net.Conn
	to string
}

func (d dialled) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(d.to), Port: 443} }

// TestNamed requests names and addresses, and the certificates after their files have changed.
func TestNamed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one", "two", "three"} {
		must(t, WriteServing(filepath.Join(dir, name), []string{name + ".example", "10.0.0.1"}, time.Now()))
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{Named: []Named{
			{CertFile: in("one.crt"), KeyFile: in("one.key"), Names: []string{"*.test", "a.test"}},
			{CertFile: in("two.crt"), KeyFile: in("two.key"), Names: []string{"B.test.", "a.test"}},
			{CertFile: in("three.crt"), KeyFile: in("three.key")},
		}}, start)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Run(ctx) }()
		serves := func(name, to string) string {
			config, err := p.TLSConfig().GetConfigForClient(nil)
			must(t, err)
			c, err := config.GetCertificate(&tls.ClientHelloInfo{ServerName: name, Conn: dialled{to: to}})
			must(t, err)
			for _, file := range []string{"one", "two", "three"} {
				if slices.Contains(c.Leaf.DNSNames, file+".example") {
					return file
				}
			}
			return "own"
		}
		for _, test := range []struct{ name, to, want string }{
			{"x.test", "", "one"}, {"a.test", "", "one"}, {"A.TEST", "", "one"}, {"b.test", "", "two"},
			{"x.b.test", "", "own"}, {"three.example", "", "three"}, {"", "10.0.0.1", "three"}, {"", "10.0.0.9", "own"},
			{"other", "10.0.0.1", "own"}, {"test", "", "own"},
		} {
			if got := serves(test.name, test.to); got != test.want {
				t.Errorf("%q at %q is served %s, want %s", test.name, test.to, got, test.want)
			}
		}
		for _, end := range []string{".crt", ".key"} {
			must(t, os.Rename(in("three"+end), in("two"+end)))
		}
		time.Sleep(2 * lookEvery)
		synctest.Wait()
		if got := serves("b.test", ""); got != "three" {
			t.Errorf("%s is served after the files have changed", got)
		}
		if got := serves("three.example", ""); got != "three" {
			t.Errorf("%s is served though its files are gone", got)
		}
		cancel()
		<-done
	})
}

// TestChangedBeforeRun checks that files changed between Open and Run are read again, for the serving certificate and
// for the front proxy.
func TestChangedBeforeRun(t *testing.T) {
	for _, test := range []struct {
		name   string
		config func(crt, key string) Config
		shown  func(p *PKI) []string
	}{
		{"serving", func(crt, key string) Config { return Config{ServingCertFile: crt, ServingKeyFile: key} },
			func(p *PKI) []string {
				config, err := p.TLSConfig().GetConfigForClient(nil)
				must(t, err)
				return config.Certificates[0].Leaf.DNSNames
			}},
		{"front proxy", func(crt, key string) Config {
			return Config{ProxyClientCertFile: crt, ProxyClientKeyFile: key}
		}, func(p *PKI) []string { return p.ProxyClient().Leaf.DNSNames }},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			in := func(name string) string { return filepath.Join(dir, name) }
			for _, name := range []string{"old", "new"} {
				must(t, WriteServing(in(name), []string{name + ".example"}, time.Now()))
			}
			synctest.Test(t, func(t *testing.T) {
				p := open(t, test.config(in("old.crt"), in("old.key")), start)
				for _, end := range []string{".crt", ".key"} {
					must(t, os.Chtimes(in("new"+end), time.Time{}, mtime(t, in("old"+end)))) // not newer
					must(t, os.Rename(in("new"+end), in("old"+end)))
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); p.Run(ctx) }()
				time.Sleep(2 * lookEvery)
				synctest.Wait()
				if names := test.shown(p); !slices.Contains(names, "new.example") {
					t.Errorf("shown is %v", names)
				}
				cancel()
				<-done
			})
		})
	}
}

func mtime(t *testing.T, file string) time.Time {
	info, err := os.Stat(file)
	must(t, err)
	return info.ModTime()
}

// TestNoOwnClients checks that client certificates of the own authority are refused, and that it is not published.
func TestNoOwnClients(t *testing.T) {
	t.Parallel()
	other := open(t, Config{}, start)
	file := filepath.Join(t.TempDir(), "clients.crt")
	must(t, os.WriteFile(file, other.ServerCA(), 0o600))
	p := open(t, Config{ClientCAFile: file, NoOwnClients: true}, start)
	if string(p.ClientCA()) != string(other.ServerCA()) {
		t.Errorf("%s", p.ClientCA())
	}
	config, err := p.TLSConfig().GetConfigForClient(nil)
	must(t, err)
	if !p.ClientRoots().Equal(other.ClientRoots()) || !config.ClientCAs.Equal(other.ClientRoots()) {
		t.Error("the own authority is among those that are believed, or asked for")
	}
}
