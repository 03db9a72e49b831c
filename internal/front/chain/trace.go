package chain

import (
	"net"
	"net/http"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

// trace records the request as a span, if it is sampled. Trusted callers decide through the header traceparent;
// requests of other callers start a new trace, linked to the caller's (pkg/endpoints/filters of k8s.io/apiserver).
// Names and attributes are kube-apiserver's, which follow OpenTelemetry's conventions for HTTP servers.
func (c *Chain) trace(x *exchange, next func(*exchange)) {
	ctx := x.r.Context()
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(x.started),
	}
	remote := request.Propagator.Extract(ctx, propagation.HeaderCarrier(x.r.Header))
	if trusted(x.user) {
		ctx = remote
	} else {
		options = append(options, trace.WithNewRoot())
		if theirs := trace.SpanContextFromContext(remote); theirs.IsValid() && theirs.IsRemote() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: theirs}))
		}
	}
	ctx, span := c.config.Tracer.Start(ctx, spanName(x), options...)
	x.r = x.r.WithContext(ctx)
	if !span.IsRecording() {
		next(x)
		return
	}
	defer span.End()
	span.SetAttributes(spanAttributes(x)...)
	x.scope.Tracer = c.config.Tracer
	defer func() {
		code := x.code
		if code == 0 {
			code = http.StatusOK // the code of net/http for a handler without a response
		}
		span.SetAttributes(attribute.Int("http.response.status_code", code),
			attribute.Int64("http.response.body.size", x.written))
		if code >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	}()
	next(x)
}

// spanned returns the step with a span around it and all later steps, as in kube-apiserver: the time of the step itself
// is the difference to the span below. Authentication runs before the trace is chosen: its span is in the request's
// trace unless a trusted caller sends a trace; then it is in a separate one.
func (c *Chain) spanned(name string, of step) step {
	if c.config.Tracer == nil {
		return of
	}
	return func(x *exchange, next func(*exchange)) {
		if x.user != nil && x.scope.Tracer == nil {
			of(x, next)
			return
		}
		ctx, span := c.config.Tracer.Start(x.r.Context(), name)
		defer span.End()
		x.r = x.r.WithContext(ctx)
		of(x, next)
	}
}

// impersonationFilter is the name of the step impersonate in spans and metrics.
func (c *Chain) impersonationFilter() string {
	if c.config.LegacyImpersonation {
		return "impersonation"
	}
	return "constrainedimpersonation"
}

// trusted reports whether a user may control tracing.
func trusted(u user.Info) bool {
	return u != nil && slices.ContainsFunc(u.GetGroups(), func(group string) bool {
		return group == user.SystemPrivilegedGroup || group == user.MonitoringGroup
	})
}

// spanName is the method and the path without names.
func spanName(x *exchange) string {
	info := x.info
	if !info.IsResource {
		return x.r.Method
	}
	name := "/" + info.APIPrefix
	if info.Group != "" {
		name += "/" + info.Group
	}
	name += "/" + info.Version
	if info.Namespace != "" {
		name += "/namespaces/{:namespace}"
	}
	name += "/" + info.Resource
	if info.Name != "" {
		name += "/{:name}"
	}
	if info.Subresource != "" {
		name += "/" + info.Subresource
	}
	return x.r.Method + " " + name
}

func spanAttributes(x *exchange) []attribute.KeyValue {
	host, port := splitHost(x.r.Host)
	peer, peerPort := splitHost(x.r.RemoteAddr)
	scheme := "http"
	if x.r.TLS != nil {
		scheme = "https"
	}
	attributes := []attribute.KeyValue{
		attribute.String("http.request.method", x.r.Method), attribute.String("url.scheme", scheme),
		attribute.String("url.path", x.r.URL.Path), attribute.String("http.target", x.r.URL.RequestURI()),
		attribute.String("server.address", host), attribute.String("network.peer.address", peer),
		attribute.String("client.address", peer),
		attribute.String("network.protocol.version", strconv.Itoa(x.r.ProtoMajor)),
		attribute.String("user_agent.original", x.r.UserAgent()), attribute.String("audit-id", x.scope.AuditID),
	}
	if port > 0 {
		attributes = append(attributes, attribute.Int("server.port", port))
	}
	if peerPort > 0 {
		attributes = append(attributes, attribute.Int("network.peer.port", peerPort))
	}
	return attributes
}

// splitHost splits "host:port"; port is 0 if there is none.
func splitHost(address string) (host string, port int) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return address, 0
	}
	port, _ = strconv.Atoi(text)
	return host, port
}
