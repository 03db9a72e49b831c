package request

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// explainParameter is the query parameter by which a write asks why it is refused.
const explainParameter = "explain"

// AsksWhy reports whether a write asks why it is refused. An access review then has an explanation in its status, and
// what admission refuses comes with a warning that names the plugin.
func AsksWhy(r *http.Request) bool {
	if r.Method == http.MethodGet || !strings.Contains(r.URL.RawQuery, explainParameter+"=") {
		return false
	}
	query, _ := url.ParseQuery(r.URL.RawQuery) // keeps what it understands
	return query.Get(explainParameter) == "true"
}

// Explains reports whether the request that ctx belongs to asks why it is refused.
func Explains(ctx context.Context) bool {
	s := ScopeOf(ctx)
	return s != nil && s.Explain
}
