package request

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// explainParameter is the query parameter with which a write requests the reason of a refusal.
const explainParameter = "explain"

// RequestsExplanation reports whether a write requests an explanation of a refusal. An access review then has an
// explanation in its status, and a refusal by admission comes with a warning that names the plugin.
func RequestsExplanation(r *http.Request) bool {
	if r.Method == http.MethodGet || !strings.Contains(r.URL.RawQuery, explainParameter+"=") {
		return false
	}
	query, _ := url.ParseQuery(r.URL.RawQuery) // ParseQuery keeps the valid parts
	return query.Get(explainParameter) == "true"
}

// Explains reports whether the request of ctx wants an explanation of a refusal.
func Explains(ctx context.Context) bool {
	s := ScopeOf(ctx)
	return s != nil && s.Explain
}
