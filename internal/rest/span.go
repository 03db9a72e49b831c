package rest

import (
	"net"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/bowsprit/bowsprit/internal/request"
)

// spanNames maps verbs to kube-apiserver's span names. Watches have no span.
var spanNames = map[string]string{
	"get": "Get", "list": "List", "create": "Create", "update": "Update", "patch": "Patch", "delete": "Delete",
	"deletecollection": "Delete",
}

// startSpan starts the span of a verb if the request is traced.
func startSpan(r *http.Request, info *request.Info) (*http.Request, trace.Span) {
	name := spanNames[info.Verb]
	if name == "" {
		return r, noop.Span{}
	}
	ctx, span := request.StartSpan(r.Context(), name)
	if !span.IsRecording() {
		return r, span
	}
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	span.SetAttributes(
		attribute.String("accept", r.Header.Get("Accept")),
		attribute.String("audit-id", request.ScopeOf(ctx).AuditID),
		attribute.String("client", client),
		attribute.String("api-group", info.Group), attribute.String("api-version", info.Version),
		attribute.String("name", info.Name), attribute.String("subresource", info.Subresource),
		attribute.String("namespace", info.Namespace), attribute.String("protocol", r.Proto),
		attribute.String("resource", info.Resource), attribute.String("scope", scopeOf(info)),
		attribute.String("url", r.URL.Path), attribute.String("user-agent", r.UserAgent()),
		attribute.String("verb", r.Method),
	)
	return r.WithContext(ctx), span
}

// startEncoding starts the span for encoding and writing a response if the request is traced.
func startEncoding(r *http.Request, f form) (*http.Request, trace.Span) {
	ctx, span := request.StartSpan(r.Context(), "SerializeObject")
	if !span.IsRecording() {
		return r, span
	}
	span.SetAttributes(
		attribute.String("audit-id", request.ScopeOf(ctx).AuditID),
		attribute.String("method", r.Method), attribute.String("url", r.URL.Path),
		attribute.String("protocol", r.Proto), attribute.String("mediaType", f.Type),
	)
	return r.WithContext(ctx), span
}

// scopeOf returns the scope of a request: a resource (one object), a namespace or the cluster.
func scopeOf(info *request.Info) string {
	switch {
	case info.Name != "":
		return "resource"
	case info.Namespace != "":
		return "namespace"
	}
	return "cluster"
}
