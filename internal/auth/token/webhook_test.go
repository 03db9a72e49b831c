package token

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// hook is a webhook that accepts the token "good", with TokenReviews in one version.
type hook struct {
	version  string
	requests chan string // token and audiences of each request
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review authenticationv1.TokenReview
	err := json.NewDecoder(r.Body).Decode(&review)
	if err != nil || review.APIVersion != "authentication.k8s.io/"+h.version {
		http.Error(w, fmt.Sprint(review.APIVersion, err), http.StatusBadRequest)
		return
	}
	h.requests <- review.Spec.Token + " " + strings.Join(review.Spec.Audiences, ",")
	switch review.Spec.Token {
	case "good":
		review.Status.Authenticated = true
		review.Status.User = authenticationv1.UserInfo{
			Username: "jane", UID: "1", Groups: []string{"dev"},
			Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
		}
	case "aware":
		review.Status.Authenticated, review.Status.User.Username = true, "joe"
		review.Status.Audiences = []string{"there", "x"}
	case "bad":
		review.Status.Error = "never heard of it"
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

func startHook(t *testing.T, version string) (h *hook, kubeconfig string) {
	t.Helper()
	h = &hook{version: version, requests: make(chan string, 20)}
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	ca := write(t, "ca", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return h, write(t, "kubeconfig", fmt.Appendf(nil, `
apiVersion: v1
kind: Config
clusters: [{name: hook, cluster: {server: "%s/authenticate", certificate-authority: %s}}]
users: [{name: me, user: {}}]
contexts: [{name: hook, context: {cluster: hook, user: me}}]
current-context: hook
`, server.URL, ca))
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1", "v1beta1"} {
		h, kubeconfig := startHook(t, version)
		r := open(t, Config{WebhookFile: kubeconfig, WebhookVersion: version, WebhookTTL: time.Hour})
		for _, tc := range []struct {
			name, token   string
			wanted        []string
			want, request string
		}{
			{"good", "good", nil, "jane 1 dev map[k:[v]] here,there", "good here,there"},
			{"remembered", "good", nil, "jane 1 dev map[k:[v]] here,there", ""},
			{"for another server", "good", []string{"x"}, "none", "good x"},
			{"for what the webhook says", "aware", []string{"x", "y"}, "joe   x", "aware x,y"},
			{"unknown", "unknown", nil, "none", "unknown here,there"},
			{"unknown again", "unknown", nil, "none", ""},
			{"refused", "bad", nil, "error: never heard of it", "bad here,there"},
			{"refused again", "bad", nil, "error: never heard of it", "bad here,there"},
		} {
			if got := ask(t, r, tc.token, tc.wanted...); got != tc.want {
				t.Errorf("%s: %s: got %q, want %q", version, tc.name, got, tc.want)
			}
			request := ""
			select {
			case request = <-h.requests:
			default:
			}
			if request != tc.request {
				t.Errorf("%s: %s: the webhook was asked %q, want %q", version, tc.name, request, tc.request)
			}
		}
	}
}

func TestWebhookErrors(t *testing.T) {
	t.Parallel()
	_, kubeconfig := startHook(t, "v1")
	for _, tc := range []struct{ file, version, want string }{
		{kubeconfig, "v2", `unsupported authentication webhook version "v2", supported versions are "v1", "v1beta1"`},
		{kubeconfig + ".none", "v1", "--authentication-token-webhook-config-file: "},
	} {
		_, err := Open(Config{WebhookFile: tc.file, WebhookVersion: tc.version, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %q", err, tc.want)
		}
	}
}
