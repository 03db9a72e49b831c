package modes

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/testing/hostile"
)

// TestHostileWebhooks makes the authorization webhook try to exhaust the server. It allows nothing, and its reason is
// cut, because it becomes part of a 403.
func TestHostileWebhooks(t *testing.T) {
	for _, answer := range hostile.Servers(t) {
		t.Run(answer.Name, func(t *testing.T) {
			t.Parallel()
			hostileWebhook(t, answer, func(text string) {
				if sent := answer.Sent(); sent > 6*hostile.MaxSent || len(text) > hostile.MaxError {
					t.Errorf("%d bytes of text, the client took %d", len(text), sent)
				}
			})
		})
	}
	talkative := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status.Reason = strings.Repeat("because ", 50_000)
		review.Status.EvaluationError = review.Status.Reason
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	})
	hostileWebhook(t, talkative, func(text string) {
		if len(text) > hostile.MaxError {
			t.Errorf("%d bytes of text", len(text))
		}
	})
}

func hostileWebhook(t *testing.T, answer http.Handler, check func(text string)) {
	t.Helper()
	s := httptest.NewServer(answer)
	defer s.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, file, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "`+s.URL+`"}}], users: [{name: u, user: {}}]}`)
	c := config(Webhook)
	c.Webhook = WebhookConfig{KubeconfigFile: file, Version: "v1"}
	m := open(t, c)
	d, err := m.Authorize(t.Context(), &user.DefaultInfo{Name: "joe"}, pods("get"))
	if d.Verdict == authz.Allow {
		t.Error("a hostile answer allows")
	}
	text := d.Reason
	if err != nil {
		text += err.Error()
	}
	check(text)
}
