package request

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// Scope is what a request's context carries beside its deadline. Package front makes one for each request.
type Scope struct {
	// AuditID is the Audit-Id that the client sent or front chose; it names the request in logs.
	AuditID string
	// Visible is set before the request is handled, of a list or watch that shows what the caller may see; nil shows
	// everything.
	Visible Visibility
	// Explain is set before the request is handled, of a write that asks why it is refused (AsksWhy).
	Explain bool
	// Waits is set before the request is handled.
	Waits Waits
	// Audit is what is recorded of the request; nil if it is not. It is set before the request is handled.
	Audit Record
	// Deprecated is set while the request is handled if it is about a deprecated version, and Removed to the release
	// ("1.22") in which that version goes, if that is known.
	Deprecated bool
	Removed    string
	// Tracer begins spans; nil of a request that is not traced.
	Tracer trace.Tracer
	// Over is set by a handler that has begun nothing which may know the request when the handler has returned: then
	// the memory of the Scope, of the request and of its context may serve another request.
	Over bool
	// Latency is how long the request has spent on what.
	Latency Latency

	warnings warnings
}

// NewContext returns a context that carries s.
func NewContext(parent context.Context, s *Scope) context.Context {
	return &scoped{Context: parent, scope: s}
}

// ScopeOf returns the Scope that ctx carries, or nil outside of a request.
func ScopeOf(ctx context.Context) *Scope {
	s, _ := ctx.Value(scopeKey{}).(*Scope)
	return s
}

type scopeKey struct{}

// scoped saves the boxing of context.WithValue; a context is made for each request.
type scoped struct {
	context.Context
	scope *Scope
}

func (c *scoped) Value(key any) any {
	if key == (scopeKey{}) {
		return c.scope
	}
	return c.Context.Value(key)
}
