package hook

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/request"
)

// startSpan starts the span of a call if the request is traced, like kube-apiserver.
func (h *hook) startSpan(ctx context.Context, a *admit.Attributes, uid string) (context.Context, trace.Span) {
	name := "Call validating webhook"
	if h.half == admitting {
		name = "Call mutating webhook"
	}
	ctx, span := request.StartSpan(ctx, name)
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("configuration", h.configuration), attribute.String("webhook", h.Name),
			attribute.String("resource", requested(a).String()), attribute.String("subresource", a.Subresource),
			attribute.String("operation", string(a.Operation)), attribute.String("UID", uid))
	}
	return ctx, span
}

func requested(a *admit.Attributes) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: a.Resource.Group, Version: a.Version.Name, Resource: a.Resource.Plural}
}
