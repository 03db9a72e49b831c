package request

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestRequestsExplanation(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]bool{
		"/x?explain=true": true, "/x?dryRun=All&explain=true": true, "/x?explain=false": false, "/x?explain": false,
		"/x": false, "/x?a=explain%3Dtrue": false, "/x?unexplain=true": false, "/x?a=explain=true": false,
	} {
		if got := RequestsExplanation(httptest.NewRequest(http.MethodPost, target, nil)); got != want {
			t.Errorf("%s: %v", target, got)
		}
	}
	if RequestsExplanation(httptest.NewRequest(http.MethodGet, "/x?explain=true", nil)) {
		t.Error("a read asks")
	}
	if Explains(t.Context()) || !Explains(NewContext(t.Context(), &Scope{Explain: true})) {
		t.Error("the scope says whether a request asks")
	}
}
