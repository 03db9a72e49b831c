package chain

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/front/audit"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

// newAuditor returns an Auditor with the rules and a mode of the log, and a function that reads the log.
func newAuditor(t testing.TB, rules, path, mode string) (*audit.Auditor, func() []auditv1.Event) {
	t.Helper()
	dir := t.TempDir()
	if path == "" {
		path = filepath.Join(dir, "audit.log")
	}
	policy := filepath.Join(dir, "policy.yaml")
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n" + rules
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := audit.New(audit.Options{PolicyFile: policy, Log: audit.LogOptions{
		Path: path, Format: audit.FormatJSON, Version: "audit.k8s.io/v1", Mode: mode,
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Run(); err != nil {
		t.Fatal(err)
	}
	return a, func() (out []auditv1.Event) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var e auditv1.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			out = append(out, e)
		}
		return out
	}
}

// TestAudit checks the records of requests that end in different steps.
func TestAudit(t *testing.T) {
	t.Parallel()
	const rules = "- level: None\n  nonResourceURLs: [/healthz]\n- level: Metadata\n"
	a, events := newAuditor(t, rules, "", audit.ModeBlockingStrict)
	h := newChain(t, func(w http.ResponseWriter, r *http.Request, info *request.Info, _ user.Info) {
		if info.Name == "boom" {
			panic("boom")
		}
		request.RecordOf(r.Context()).Annotate("from", "handler")
		w.WriteHeader(http.StatusCreated)
	}, func(c *Config) { c.Audit = a })
	servetest.Do(h, "GET", "/healthz")
	servetest.Do(h, "POST", "/api/v1/pods", "Audit-Id: mine")
	servetest.Do(h, "GET", "/api/v1/pods?watch=1")
	servetest.Do(h, "GET", "/api/v1/pods/boom")
	servetest.Do(h, "GET", "/api/v1/pods", "Test-User: wrong")
	servetest.Do(h, "GET", "/api/v1/pods?timeout=x")
	servetest.Do(h, "GET", "/api/v1/pods", "Test-User: jane")
	servetest.Do(h, "GET", "/api/v1/pods", "Impersonate-User: jane")
	servetest.Do(h, "GET", "/api/v1/pods", "Impersonate-Group: dev")
	if err := a.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events() {
		line := fmt.Sprintf("%s %s %s %s", e.AuditID, e.Verb, e.Stage, e.User.Username)
		if e.ImpersonatedUser != nil {
			line += " as " + e.ImpersonatedUser.Username
		}
		if s := e.ResponseStatus; s != nil {
			line += fmt.Sprintf(" %d %s", s.Code, s.Reason)
		}
		if d := e.Annotations["authorization.k8s.io/decision"]; d != "" {
			line += " " + d
		}
		if e.Annotations["from"] != "" {
			line += " handled"
		}
		got = append(got, line)
	}
	want := []string{
		"mine create RequestReceived root", "mine create ResponseComplete root 201  allow handled",
		"new-id watch RequestReceived root", "new-id watch ResponseStarted root 201  allow handled",
		"new-id watch ResponseComplete root 201  allow handled",
		"new-id get RequestReceived root", "new-id get Panic root 500 InternalError allow",
		"new-id list ResponseStarted  401 Unauthorized",
		"new-id list ResponseStarted  400 BadRequest",
		"new-id list RequestReceived jane", "new-id list ResponseComplete jane 403 Forbidden forbid",
		"new-id list RequestReceived root", "new-id list ResponseComplete root as jane 403 Forbidden forbid",
		"new-id list RequestReceived root", "new-id list ResponseComplete root 400 BadRequest",
	}
	for i := range max(len(got), len(want)) {
		var a, b string
		if i < len(got) {
			a = got[i]
		}
		if i < len(want) {
			b = want[i]
		}
		if a != b {
			t.Errorf("event %d: got %q, want %q", i, a, b)
		}
	}
}

// TestAuditStrict checks that requests that cannot be recorded are refused.
func TestAuditStrict(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	a, _ := newAuditor(t, "- level: Metadata\n", "/dev/full", audit.ModeBlockingStrict)
	h := newChain(t, text("must not be reached"), func(c *Config) { c.Audit = a })
	w := servetest.Do(h, "GET", "/api/v1/pods")
	if s := servetest.Status(t, w); s.Code != 500 || !strings.Contains(s.Message, "failed to store audit event") {
		t.Errorf("got %+v", s)
	}
}

func BenchmarkAudit(b *testing.B) {
	a, _ := newAuditor(b, "- level: Metadata\n", "/dev/null", audit.ModeBlockingStrict)
	none, _ := newAuditor(b, "- level: None\n", "/dev/null", audit.ModeBlockingStrict)
	for _, c := range []struct {
		name  string
		audit *audit.Auditor
	}{{"off", nil}, {"none", none}, {"metadata", a}} {
		b.Run(c.name, func(b *testing.B) {
			h := newChain(b, text("ok"), func(config *Config) { config.Audit = c.audit })
			b.ReportAllocs()
			for b.Loop() {
				servetest.Do(h, "GET", "/api/v1/namespaces/default/pods/p")
			}
		})
	}
}
