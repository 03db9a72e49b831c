package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/server/config"
)

// receiver is a collector that keeps the spans that it gets.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []*tracev1.Span
}

// Export implements collector.TraceServiceServer.
func (c *receiver) Export(
	_ context.Context, r *collector.ExportTraceServiceRequest,
) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// of returns the spans of a trace by name.
func (c *receiver) of(trace string) map[string]*tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]*tracev1.Span{}
	for _, s := range c.spans {
		if fmt.Sprintf("%x", s.TraceId) == trace {
			out[s.Name] = s
		}
	}
	return out
}

// startReceiver returns a collector, and a configuration file that names it.
func startReceiver(t *testing.T) (*receiver, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, server := &receiver{}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); wg.Wait() })
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: " + listener.Addr().String()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return c, file
}

// startAllowing returns an admission webhook that allows everything, and the traceparents that it has got.
func startAllowing(t *testing.T) (*httptest.Server, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var parents []string
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct{ Request struct{ UID string } }
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		parents = append(parents, r.Header.Get("Traceparent"))
		mu.Unlock()
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`,
			review.Request.UID)
	}))
	t.Cleanup(hook.Close)
	return hook, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return parents
	}
}

// sendTraced sends a request with headers, "Name: value".
func sendTraced(t *testing.T, config *rest.Config, method, url, body string, headers ...string) {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if data, err := io.ReadAll(res.Body); err != nil || res.StatusCode >= 400 {
		t.Fatalf("%s %s: %d %s %v", method, url, res.StatusCode, data, err)
	}
}

// TestTracing follows a write of a trusted caller from its request to the webhook and the store, and checks that the
// write of an untrusted caller is not traced. Stopping the server delivers the remaining spans.
func TestTracing(t *testing.T) {
	t.Parallel()
	const trace, stranger = "0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c"
	const parent = "b7ad6b7169203331"
	spans, file := startReceiver(t)
	hook, parents := startAllowing(t)
	var log bytes.Buffer
	c := config.Config{Ephemeral: true, Log: slog.New(slog.NewTextHandler(&log, nil))}
	c.Observability.TracingConfigFile = file
	client, stop := runServer(t, c)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	client.do("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
		fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration",
		"metadata":{"name":"traced"},"webhooks":[{"name":"hook.example.com","sideEffects":"None",
		"admissionReviewVersions":["v1"],"clientConfig":{"url":%q,"caBundle":%q},
		"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"]}]}]}`,
			hook.URL, base64.StdEncoding.EncodeToString(authority)), http.StatusCreated)
	sendTraced(t, client.server.RESTConfig(), "POST", client.server.URL()+"/api/v1/namespaces/default/configmaps",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"traced"}}`, "Content-Type: application/json",
		"Traceparent: 00-"+trace+"-"+parent+"-01", "Audit-Id: the-request")
	unknown := rest.AnonymousClientConfig(client.server.RESTConfig())
	sendTraced(t, unknown, "GET", client.server.URL()+"/version", "", "Traceparent: 00-"+stranger+"-"+parent+"-01")
	stop()

	got := spans.of(trace)
	of := map[string]string{ // span: the one above it
		"audit":                    "POST /api/v1/namespaces/{:namespace}/configmaps",
		"constrainedimpersonation": "audit",
		"priorityandfairness":      "constrainedimpersonation",
		"authorization":            "priorityandfairness",
		"Create":                   "authorization",
		"SerializeObject":          "Create",
		"Create etcd3":             "Create",
		"Call validating webhook":  "Create",
		"HTTP POST":                "Call validating webhook",
	}
	for name, above := range of {
		switch s, up := got[name], got[above]; {
		case s == nil || up == nil:
			t.Fatalf("no span %q below %q in %v\n%s", name, above, got, log.String())
		case !bytes.Equal(s.ParentSpanId, up.SpanId):
			t.Errorf("%q is not below %q", name, above)
		}
	}
	if len(got) != len(of)+1 {
		t.Errorf("spans %v", got)
	}
	request := got[of["audit"]]
	if fmt.Sprintf("%x", request.ParentSpanId) != parent || request.Kind != tracev1.Span_SPAN_KIND_SERVER {
		t.Errorf("the request is %v", request)
	}
	for key, want := range map[string]string{
		"http.request.method": "POST", "url.path": "/api/v1/namespaces/default/configmaps", "audit-id": "the-request",
		"http.response.status_code": "201",
	} {
		if value := attributeOf(request, key); value != want {
			t.Errorf("%s is %q, not %q", key, value, want)
		}
	}
	if key := attributeOf(got["Create etcd3"], "key"); key != "/configmaps/default/traced" {
		t.Errorf("key %q", key)
	}
	if name := attributeOf(got["Call validating webhook"], "webhook"); name != "hook.example.com" {
		t.Errorf("webhook %q", name)
	}
	if media := attributeOf(got["SerializeObject"], "mediaType"); media != "application/json" {
		t.Errorf("the answer is encoded as %q", media)
	}
	want := fmt.Sprintf("00-%s-%x-01", trace, got["HTTP POST"].SpanId)
	// Controllers create ConfigMaps, too, without a trace.
	seen := slices.DeleteFunc(parents(), func(parent string) bool { return parent == "" })
	if len(seen) != 1 || seen[0] != want {
		t.Errorf("the webhook has got %q, not %q", seen, want)
	}
	if strange := spans.of(stranger); len(strange) > 0 {
		t.Errorf("a stranger has had %v traced", strange)
	}
}

func attributeOf(s *tracev1.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			if text := a.Value.GetStringValue(); text != "" {
				return text
			}
			return fmt.Sprint(a.Value.GetIntValue())
		}
	}
	return ""
}

// TestMetricsAreKubes reads the metrics that Kubernetes' dashboards need, after requests that fill them, and the
// metrics that the configuration changes.
func TestMetricsAreKubes(t *testing.T) {
	t.Parallel()
	c := config.Config{Ephemeral: true}
	c.API.RuntimeConfig = map[string]string{"coordination.k8s.io/v1beta1": "true"}
	c.Observability = config.Observability{
		AllowMetricLabels: map[string]string{"apiserver_request_total,code": "201,500"},
		DisabledMetrics:   []string{"apiserver_tls_handshake_errors_total"}, Profiling: new(false),
		Verbosity: func(int) { t.Error("the verbosity was set without --profiling") },
	}
	client, stop := runServer(t, c)
	client.do("GET", "/apis/coordination.k8s.io/v1beta1/leasecandidates", "", http.StatusOK)
	client.do("GET", "/api/v1/componentstatuses", "", http.StatusOK)
	client.do("POST", "/api/v1/namespaces/default/configmaps",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, http.StatusCreated)
	client.do("GET", "/debug/pprof/", "", http.StatusNotFound)
	client.do("PUT", "/debug/flags/v", "4", http.StatusNotFound)
	text := client.text("/metrics")
	stop()
	for _, want := range []string{
		`apiserver_requested_deprecated_apis{group="coordination.k8s.io",removed_release="1.39",resource="leasecandidates",subresource="",version="v1beta1"} 1`,
		`apiserver_requested_deprecated_apis{group="",removed_release="",resource="componentstatuses",subresource="",version="v1"} 1`,
		`etcd_requests_total{group="",operation="create",resource="configmaps"} `,
		`apiserver_request_total{code="unexpected",component="apiserver",dry_run="",group="",resource="componentstatuses",scope="cluster",subresource="",verb="LIST",version="v1"} 1`,
		`apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1"} 1`,
		`apiserver_request_sli_duration_seconds_count{component="apiserver",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1"} 1`,
		`apiserver_request_body_size_bytes_count{group="",resource="configmaps",verb="create"} 1`,
		`apiserver_response_sizes_count{component="apiserver",group="",resource="componentstatuses",scope="cluster",subresource="",verb="LIST",version="v1"} 1`,
		`authorization_attempts_total{result="allowed"} `, `disabled_metrics_total 1`,
		`apiserver_request_filter_duration_seconds_count{filter="authorization"} `,
		`apiserver_webhooks_x509_missing_san_total 0`, `version_info{binary="1.37",component="kube",`,
		"# HELP apiserver_request_total [STABLE] Counter of apiserver requests",
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("no %s", want)
		}
	}
	for _, absent := range []string{"apiserver_tls_handshake_errors_total", "apiserver_request_slo_duration_seconds"} {
		if strings.Contains(text, absent) {
			t.Errorf("%s is there", absent)
		}
	}
}
