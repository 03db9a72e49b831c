package doctor

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/authority"
)

// examine checks settings, and returns the worst finding of each check.
func examine(t *testing.T, c Settings, now time.Time) map[string]Finding {
	t.Helper()
	worse := map[State]int{OK: 1, Warning: 2, Problem: 3}
	found := map[string]Finding{}
	for _, f := range Examine(t.Context(), Patient{Settings: c, Now: now, Find: nothing}) {
		if worse[f.State] > worse[found[f.Check].State] {
			found[f.Check] = f
		}
	}
	return found
}

// nothing is the Find of an etcd that has no database yet.
func nothing(string, []string, func([]byte) bool) ([]string, error) { return nil, fs.ErrNotExist }

func expect(t *testing.T, f Finding, state State, text string) {
	t.Helper()
	if f.State != state || !strings.Contains(f.Text, text) || (state != OK) != (f.Do != "") {
		t.Errorf("%+v; want %s, with %q", f, state, text)
	}
}

func TestNothingYet(t *testing.T) {
	t.Parallel()
	found := examine(t, Settings{DataDir: filepath.Join(t.TempDir(), "data")}, time.Now())
	expect(t, found["settings"], OK, "")
	expect(t, found["data directory"], OK, "the first start creates it")
	expect(t, found["server"], OK, "no server has run")
	if _, ok := found["port"]; ok {
		t.Error("port 0 is looked at")
	}
}

func TestPortAndMissingFile(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	c := Settings{DataDir: t.TempDir()}
	c.BindAddress, c.SecurePort = "127.0.0.1", busy.Addr().(*net.TCPAddr).Port
	c.TLSCert = "only-half"
	found := examine(t, c, time.Now())
	expect(t, found["port"], Problem, "in use")
	expect(t, found["--tls-cert-file"], Problem, "only-half")
}

func TestFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	expect(t, examine(t, Settings{DataDir: dir}, time.Now())["format"], OK, "1; this version reads")
	for content, text := range map[string]string{
		`{"format":99,"version":"v9.8.7"}`: "written by bowsprit v9.8.7 in format 99", "{": "contains no format",
	} {
		if err := os.WriteFile(filepath.Join(dir, "format.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		expect(t, examine(t, Settings{DataDir: dir}, time.Now())["format"], Problem, text)
	}
}

func TestDataDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, examine(t, Settings{DataDir: file}, time.Now())["data directory"], Problem, "is not a directory")

	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	expect(t, examine(t, Settings{DataDir: dir}, time.Now())["data directory"], Warning, "mode 755")

	db := filepath.Join(dir, "etcd", "member", "snap", "db")
	if err := os.MkdirAll(filepath.Dir(db), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(db, make([]byte, 95), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Settings{DataDir: dir}
	expect(t, examine(t, c, time.Now())["database"], OK, "of 8.0 GiB")
	c.QuotaBackendBytes = 100
	expect(t, examine(t, c, time.Now())["database"], Warning, "")
}

func TestInvalidSettings(t *testing.T) {
	t.Parallel()
	found := Examine(t.Context(), Patient{Invalid: errors.New("half a pair")})
	expect(t, found[0], Problem, "half a pair")
}

// TestCertificates checks certificates close to their end, and wrong clocks.
func TestCertificates(t *testing.T) {
	t.Parallel()
	ca := authority.New(t)
	block, _ := pem.Decode(ca.CA)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pki", "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	c, now := Settings{DataDir: dir}, time.Now()
	for _, step := range []struct {
		now   time.Time
		check string
		state State
		text  string
	}{
		{now, "authority", Warning, "expires on"}, // valid for an hour
		{now.Add(100 * 24 * time.Hour), "authority", Problem, "expired on"},
		{now.Add(-100 * 24 * time.Hour), "clock", Problem, "valid from"},
	} {
		expect(t, examine(t, c, step.now)[step.check], step.state, step.text)
	}
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, examine(t, c, now)["authority"], Problem, "no PEM certificate")
}

// server writes the kubeconfig of a server that answers so.
func server(t *testing.T, code int, text string, date time.Time) Settings {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", date.UTC().Format(http.TimeFormat))
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	kubeconfig := `{"clusters":[{"name":"x","cluster":{"server":"` + s.URL + `"}}],"current-context":"x",
		"contexts":[{"name":"x","context":{"cluster":"x"}}]}`
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return Settings{DataDir: dir}
}

func TestServer(t *testing.T) {
	t.Parallel()
	now := time.Now()
	found := examine(t, server(t, http.StatusOK, "ok", now.Add(-time.Hour)), now)
	expect(t, found["server"], OK, "is ready")
	expect(t, found["clock"], Warning, "differs")
	found = examine(t, server(t, http.StatusInternalServerError, "[-]etcd-room failed: full\n", now), now)
	expect(t, found["server"], Problem, "etcd-room failed: full")

	broken := server(t, http.StatusOK, "", now)
	if err := os.WriteFile(filepath.Join(broken.DataDir, "kubeconfig"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, examine(t, broken, now)["server"], Problem, "kubeconfig")
}

func TestEtcd(t *testing.T) {
	t.Parallel()
	for body, state := range map[string]State{`{"health":"true"}`: OK, `{"health":"false","reason":"ALARM"}`: Problem} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/health":
				_, _ = w.Write([]byte(body))
			case "/v3/kv/range":
				http.NotFound(w, r) // a cluster without the gateway
			default:
				t.Errorf("asked for %s", r.URL.Path)
			}
		}))
		t.Cleanup(s.Close)
		c := Settings{DataDir: t.TempDir()}
		c.EtcdServers = []string{s.URL}
		expect(t, examine(t, c, time.Now())["etcd"], state, s.URL)
		c.EtcdCA = filepath.Join(t.TempDir(), "none")
		expect(t, examine(t, c, time.Now())["etcd"], Problem, "none")
	}
}

// TestFormatInEtcd uses a fake etcd. test/e2e runs doctor with a real one.
func TestFormatInEtcd(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]struct {
		state State
		text  string
	}{
		`{"format":1,"version":"v0.1.0"}`: {OK, "1; this version reads"},
		`{"format":99,"version":"v9.8.7"}`: {
			Problem, "the data in etcd below mine was written by bowsprit v9.8.7 in format 99",
		},
		"{": {Problem, "contains no format"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/health" {
				_, _ = w.Write([]byte(`{"health":"true"}`))
				return
			}
			var ask struct{ Key []byte }
			if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
				t.Error(err)
			}
			if string(ask.Key) != "/bowsprit/format/mine/" {
				_, _ = w.Write([]byte("{}")) // no objects of removed versions
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"kvs": []any{map[string][]byte{"value": []byte(value)}}})
		}))
		t.Cleanup(s.Close)
		found := examine(t, Settings{EtcdServers: []string{s.URL}, EtcdPrefix: "mine"}, time.Now())
		expect(t, found["format"], want.state, want.text)
		expect(t, found["stored versions"], OK, "no objects")
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	findings := []Finding{{"a", OK, "good", ""}, {"b", Warning, "hm", "care"}}
	var text, raw bytes.Buffer
	if err := Show(&text, "text", findings); err != nil || !strings.Contains(text.String(), "to do: care\n") {
		t.Errorf("%v: %s", err, &text)
	}
	findings[0].State = Problem
	if err := Show(&raw, "json", findings); !errors.Is(err, errSick) {
		t.Error(err)
	}
	var again []Finding
	if err := json.Unmarshal(raw.Bytes(), &again); err != nil || again[0].State != Problem {
		t.Errorf("%v: %s", err, &raw)
	}
}

// TestNewDataDir checks that a data directory that cannot be created is a problem, and that the check leaves nothing.
func TestNewDataDir(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	e := &examination{dir: filepath.Join(above, "a", "b")}
	e.dataDir()
	left, err := os.ReadDir(above)
	if len(e.findings) != 1 || e.findings[0].State != OK || err != nil || len(left) > 0 {
		t.Errorf("a directory that can be created: %v, and %v is left", e.findings, left)
	}
	const refuses = "/proc" // takes no directories, even from root
	if !exists(refuses) {
		t.Skip("no /proc")
	}
	e = &examination{dir: refuses + "/nosuch/bowsprit"}
	e.dataDir()
	if len(e.findings) != 1 || e.findings[0].State != Problem ||
		!strings.Contains(e.findings[0].Text, "cannot be created in "+refuses+": ") || e.findings[0].Do == "" {
		t.Errorf("a directory that cannot be created: %v", e.findings)
	}
}
