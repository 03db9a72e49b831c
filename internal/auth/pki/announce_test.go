package pki

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAnnounce replaces a serving certificate: ServerCA shows the next one before the server uses it. A file that is
// put back withdraws the announcement.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), start
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, from := range []string{"one", "two"} {
		open(t, Config{Dir: in(from), Hosts: []string{"a.example"}}, start)
	}
	install := func(from string) {
		t.Helper()
		for _, kind := range []string{".crt", ".key"} {
			must(t, os.WriteFile(in("tls"+kind), mustRead(t, in(from+"/apiserver"+kind)), 0o600))
		}
	}
	install("one")
	p := open(t, Config{ServingCertFile: in("tls.crt"), ServingKeyFile: in("tls.key"), Announce: time.Minute}, start)
	p.config.Now = func() time.Time { return now }
	one, two := mustRead(t, in("one/apiserver.crt")), mustRead(t, in("two/apiserver.crt"))
	both := bytes.Join([][]byte{one, two}, []byte("\n"))
	for _, step := range []struct {
		desc, file       string
		pass             time.Duration
		changed          bool
		served, announce []byte
	}{
		{"first", "one", 0, false, one, one},
		{"announced", "two", 0, true, one, both},
		{"withdrawn", "one", time.Second, true, one, one},
		{"announced again", "two", time.Second, true, one, both},
		{"still announced", "two", 59 * time.Second, false, one, both},
		{"used", "two", time.Second, true, two, two},
		{"kept", "two", time.Minute, false, two, two},
	} {
		install(step.file)
		now = now.Add(step.pass)
		changed := p.Changed()
		must(t, p.Refresh())
		if !serves(t, p, "a.example", start).Equal(leaf(t, step.served)) {
			t.Errorf("%s: it serves the other certificate", step.desc)
		}
		if !bytes.Equal(p.ServerCA(), step.announce) {
			t.Errorf("%s: ServerCA returns\n%s", step.desc, p.ServerCA())
		}
		select {
		case <-changed:
			if !step.changed {
				t.Errorf("%s: Changed is closed", step.desc)
			}
		default:
			if step.changed {
				t.Errorf("%s: Changed is not closed", step.desc)
			}
		}
	}
}
