package request

import "context"

// Scope is what a request's context carries beside its deadline. Package front makes one for each request.
type Scope struct {
	// AuditID is the Audit-Id that the client sent or front chose; it names the request in logs.
	AuditID string
	// Waits is set before the request is handled.
	Waits Waits

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
