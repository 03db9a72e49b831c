package front

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/front/audit"
)

// TestReadsAreInTheLog checks that a read is in the audit log before the client has the whole response.
func TestReadsAreInTheLog(t *testing.T) {
	t.Parallel()
	protocols(t, func(t *testing.T, protocol int) {
		dir := t.TempDir()
		policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
		must(t, os.WriteFile(policy,
			[]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"), 0o600))
		auditor, err := audit.New(audit.Options{PolicyFile: policy, Log: audit.LogOptions{
			Path: log, Format: audit.FormatJSON, Mode: audit.ModeBlocking,
		}}, slog.New(slog.DiscardHandler))
		must(t, err)
		must(t, auditor.Run())
		r := run(t, text("object"), func(c *Config) { c.Audit = auditor })
		client := r.client(t, protocol, r.pki)
		for i := 1; i <= 100; i++ {
			r.get(t, client, "/api/v1/namespaces/default/pods/one")
			lines, err := os.ReadFile(log)
			must(t, err)
			if got := strings.Count(string(lines), "\n"); got != 2*i {
				t.Fatalf("%d lines after %d reads", got, i)
			}
		}
		must(t, auditor.Shutdown(t.Context()))
	})
}
