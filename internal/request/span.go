package request

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// StartSpan begins a span below that of ctx, of a request that is traced. It returns the context of what happens in the
// span, whose end the caller tells. Otherwise the span records nothing, and there is no allocation:
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

// Propagator reads and writes the headers by which a trace goes on elsewhere (W3C Trace Context and Baggage).
var Propagator propagation.TextMapPropagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{},
	propagation.Baggage{})
