package chain

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/front/audit"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

// TestCallerServe has a handler make requests for its caller, who may impersonate another user. They are authorized and
// recorded as the caller's, and need no credentials. A handler without a caller makes none.
func TestCallerServe(t *testing.T) {
	t.Parallel()
	a, events := newAuditor(t, "- level: Metadata\n  omitStages: [RequestReceived]\n", "", audit.ModeBlockingStrict)
	var inner []string
	h := newChain(t, func(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info) {
		if info.Name == "inner" {
			inner = append(inner, u.GetName())
			return
		}
		again := httptest.NewRequestWithContext(r.Context(), http.MethodGet, "/api/v1/pods/inner", http.NoBody)
		again.Header.Set("Test-User", "wrong") // credentials, which do not count
		if info.Name == "other" {
			again.Header.Set("Impersonate-User", "jane")
		}
		got := httptest.NewRecorder()
		CallerOf(w).Serve(got, again)
		w.WriteHeader(got.Code)
	}, func(c *Config) { c.Audit = a })
	servetest.Do(h, "GET", "/api/v1/pods/outer")
	servetest.Do(h, "GET", "/api/v1/pods/other")
	servetest.Do(h, "GET", "/api/v1/pods/outer", "Impersonate-User: bob", "Impersonate-Group: system:masters")
	servetest.Do(h, "GET", "/api/v1/pods/outer", "Test-User: jane")
	if !slices.Equal(inner, []string{"root", "bob"}) {
		t.Errorf("the inner handler was called for %q", inner)
	}
	if CallerOf(httptest.NewRecorder()) != nil {
		t.Error("a request that passed no chain has a caller")
	}
	if err := a.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events() {
		line := fmt.Sprint(e.User.Username, " ", e.ObjectRef.Name, " ", e.ResponseStatus.Code)
		if e.ImpersonatedUser != nil {
			line += " as " + e.ImpersonatedUser.Username
		}
		got = append(got, line)
	}
	want := []string{"root inner 200", "root outer 200", "root inner 403 as jane", "root other 403",
		"root inner 200 as bob", "root outer 200 as bob", "jane outer 403"}
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}
