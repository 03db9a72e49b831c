package request

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// Scope is the per-request state in a request's context. Package front creates one for each request.
type Scope struct {
	// AuditID is the Audit-Id from the client or from front; it identifies the request in logs.
	AuditID string
	// Visible is set before the request is handled, for a list or watch with visible=true; nil shows everything.
	Visible Visibility
	// Explain is set before the request is handled, for a write that wants an explanation of a refusal
	// (RequestsExplanation).
	Explain bool
	// Waits is set before the request is handled.
	Waits Waits
	// Memory is the account of the request's memory; nil if there is none. It is set before the request is handled.
	Memory Memory
	// Audit is the request's Record; nil if it is not recorded. It is set before the request is handled.
	Audit Record
	// Deprecated is set while a request for a deprecated version is handled. Removed is then the release ("1.22") that
	// removes the version, if known.
	Deprecated bool
	Removed    string
	// Tracer starts spans; nil if the request is not traced.
	Tracer trace.Tracer
	// Over is set by a handler that leaves no reference to the request behind: the memory of the Scope, the request and
	// its context may then be reused for another request.
	Over bool
	// Latency is the time that the request has spent in each phase.
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
