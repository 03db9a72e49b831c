package request

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// StartSpan starts a span below that of ctx, if the request is traced. It returns the context for work inside the span;
// the caller ends the span. Otherwise the span records nothing, and nothing is allocated:
//
//	ctx, span := request.StartSpan(ctx, "Call mutating webhook")
//	defer span.End()
//	if span.IsRecording() {
//		span.SetAttributes(…)
//	}
func StartSpan(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	s := ScopeOf(ctx)
	if s == nil || s.Tracer == nil {
		return ctx, noop.Span{}
	}
	return s.Tracer.Start(ctx, name, options...)
}

// Propagator reads and writes the headers that continue a trace in another process (W3C Trace Context and Baggage).
var Propagator propagation.TextMapPropagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{},
	propagation.Baggage{})
