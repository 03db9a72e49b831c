package inspect

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/testing/hostile"
)

// TestHostileServer reads the status of hostile servers.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	for _, s := range hostile.Servers(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			_, err := look(t.Context(), &rest.Config{Host: server.URL}, 0)
			if s.Name == "long headers" { // its body is an empty version
				s.CheckText(t, "")
				return
			}
			s.Check(t, err)
		})
	}
}

// TestHostileChecks reads the status of a server with a million failing checks of any length.
func TestHostileChecks(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			_, _ = w.Write([]byte(`{"gitVersion":"v1"}`))
		case "/readyz":
			_, _ = w.Write([]byte(strings.Repeat("[-]"+strings.Repeat("x", 1000)+"\n", 900)))
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	s, err := look(t.Context(), &rest.Config{Host: server.URL}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(s.Failing, ""); len(s.Failing) != maxFailing || len(all) > maxFailing*(maxCheck+50) {
		t.Errorf("%d checks with %d bytes", len(s.Failing), len(all))
	}
}
