package audit

import (
	"context"
	"sync"

	"k8s.io/apiserver/pkg/audit"
)

// Context returns a context in which Kubernetes' libraries (token caches and the like) can annotate the request before
// it is known whether it is recorded.
func Context(ctx context.Context) context.Context { return &library{Context: ctx} }

// library is a context with what those libraries annotate. That is made for the first that looks for it: few requests
// come to such a library at all.
type library struct {
	context.Context
	mu   sync.Mutex
	made *audit.AuditContext // nil until then
}

// libraryKey is the key by which the libraries look for it; it is a constant of their own.
var libraryKey = func() any {
	var asked asked
	audit.AuditContextFrom(&asked)
	return asked.key
}()

// asked is a context that remembers what it was asked for.
type asked struct {
	context.Context
	key any
}

// Value implements context.Context.
func (a *asked) Value(key any) any { a.key = key; return nil }

// ownKey finds the library of a context.
type ownKey struct{}

// Value implements context.Context.
func (l *library) Value(key any) any {
	switch key {
	case ownKey{}:
		return l
	case libraryKey:
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.made == nil {
			l.made = audit.AuditContextFrom(audit.WithAuditContext(context.Background()))
		}
		return l.made
	}
	return l.Context.Value(key)
}

// libraryOf returns the library that ctx carries, or nil.
func libraryOf(ctx context.Context) *library {
	l, _ := ctx.Value(ownKey{}).(*library)
	return l
}

// annotations are those that libraries have made so far.
func (l *library) annotations() map[string]string {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	made := l.made
	l.mu.Unlock()
	if made == nil {
		return nil
	}
	return made.GetEventAnnotations()
}
