package audit

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	auditapi "k8s.io/apiserver/pkg/apis/audit"

	"github.com/bowsprit/bowsprit/internal/testing/hostile"
)

// TestHostileHooks has the webhook of the audit log try to exhaust the server.
func TestHostileHooks(t *testing.T) {
	for _, answer := range hostile.Servers(t) {
		t.Run(answer.Name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(answer)
			defer s.Close()
			file := filepath.Join(t.TempDir(), "kubeconfig")
			text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
				"contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, s.URL)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			w := WebhookOptions{ConfigFile: file, InitialBackoff: time.Millisecond}
			b, err := w.open()
			if err != nil {
				t.Fatal(err)
			}
			b.ProcessEvents(&auditapi.Event{AuditID: "a"})
			if sent := answer.Sent(); sent > 6*hostile.MaxSent { // it is asked again and again
				t.Errorf("the client took %d bytes", sent)
			}
			if b.String() != "webhook" {
				t.Errorf("metrics call the backend %s", b)
			}
		})
	}
}
