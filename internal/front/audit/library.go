package audit

import (
	"context"
	"sync"

	"k8s.io/apiserver/pkg/audit"
)

// Context returns a context in which Kubernetes' libraries (token caches and the like) can annotate the request before
// the policy has been evaluated.
func Context(ctx context.Context) context.Context { return &library{Context: ctx} }

// library is a context with the annotations of Kubernetes' libraries. The AuditContext is created on first use, because
// few requests reach such a library.
type library struct {
	context.Context
	mu   sync.Mutex
	made *audit.AuditContext // nil until then
}

// libraryKey is the context key of Kubernetes' libraries, an unexported constant.
var libraryKey = func() any {
	var recorder keyRecorder
	audit.AuditContextFrom(&recorder)
	return recorder.key
}()

// keyRecorder is a context that records the key it is asked for.
type keyRecorder struct {
	context.Context
	key any
}

// Value implements context.Context.
func (a *keyRecorder) Value(key any) any { a.key = key; return nil }

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

// annotations returns the annotations that libraries have added so far.
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
