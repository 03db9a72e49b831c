package peer

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/authority"
)

// TestAuthorities checks that a changed authority file applies to the next request, and retries servers that have
// failed; a file that is unreadable, or without a certificate, changes nothing.
func TestAuthorities(t *testing.T) {
	t.Parallel()
	right, wrong := authority.New(t), authority.New(t)
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
	other.TLS = &tls.Config{Certificates: []tls.Certificate{right.Pair(t, "kubernetes.default.svc")}}
	other.StartTLS()
	defer other.Close()
	p := newTest(t, nil)
	p.settings.Hostname, p.settings.AuthorityFile = "here", filepath.Join(t.TempDir(), "ca.crt")
	p.table.Store(&table{jobs: {{name: "a", address: other.Listener.Addr().String()}}})
	later := p.host.Now().Add(time.Hour)
	ofRight, _, _ := right.Files(t, "x")
	ofWrong, _, _ := wrong.Files(t, "x")
	for _, step := range []struct {
		name, from string
		fails      bool
		code       int
		atOnce     bool
	}{
		{"missing", "", true, 0, false},
		{"another authority", ofWrong, false, http.StatusServiceUnavailable, true},
		{"the right one", ofRight, false, http.StatusOK, true},
		{"the same again", ofRight, false, http.StatusOK, false},
		{"no certificate", "authorities_test.go", true, http.StatusOK, false},
		{"another authority again", ofWrong, false, http.StatusServiceUnavailable, true},
	} {
		p.servers["a"] = &server{wait: time.Minute, due: later}
		if step.from != "" {
			text, err := os.ReadFile(step.from)
			if err = errors.Join(err, os.WriteFile(p.settings.AuthorityFile, text, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.readAuthorities(); (err != nil) != step.fails {
			t.Fatalf("%s: %v", step.name, err)
		}
		if atOnce := p.servers["a"].due.IsZero(); atOnce != step.atOnce {
			t.Errorf("%s: asked again at once: %v", step.name, atOnce)
		}
		if step.code == 0 {
			continue
		}
		if w := p.send(httptest.NewRequest("GET", "/", nil)); w.Code != step.code {
			t.Errorf("%s: %d %s", step.name, w.Code, w.Body)
		}
	}
	p.connections.Load().CloseIdle()
}
