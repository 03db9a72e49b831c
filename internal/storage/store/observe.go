package store

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/bowsprit/bowsprit/internal/request"
)

// operation is a running operation.
type operation struct {
	store     *Store
	name, key string
	started   time.Time  // zero if the operation is not observed
	span      trace.Span // if the request is traced
}

// spanNames maps operations to kube-apiserver's span names; others keep their own name.
var spanNames = map[string]string{
	"create": "Create etcd3", "update": "GuaranteedUpdate etcd3", "delete": "Delete etcd3", "get": "Get etcd3",
	"list": "List etcd3",
}

// begin starts the observation of an operation and returns the context for it.
func (s *Store) begin(ctx context.Context, name, key string) (context.Context, operation) {
	o := operation{store: s, name: name, key: key}
	if s.observe != nil {
		o.started = time.Now()
	}
	ctx, o.span = request.StartSpan(ctx, spanNames[name])
	if o.span.IsRecording() {
		o.span.SetAttributes(attribute.String("key", "/"+key),
			attribute.String("audit-id", request.ScopeOf(ctx).AuditID))
	}
	return ctx, o
}

// end has the operation observed.
func (o operation) end(ctx context.Context, err error) {
	if err != nil {
		o.span.SetStatus(codes.Error, err.Error())
	}
	o.span.End()
	if !o.started.IsZero() {
		o.store.observe(ctx, o.name, o.key, time.Since(o.started), err)
	}
}
