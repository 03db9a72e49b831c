package chain

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/front/audit"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

// TestSlowRequests checks the latencies in the audit log and in the log, which only slow requests have.
func TestSlowRequests(t *testing.T) {
	t.Parallel()
	a, events := newAuditor(t, "- level: Metadata\n", "", audit.ModeBlockingStrict)
	now := time.Unix(0, 0)
	var logged strings.Builder
	registry := prometheus.NewRegistry()
	h := newChain(t, func(w http.ResponseWriter, r *http.Request, info *request.Info, _ user.Info) {
		switch info.Name {
		case "slow":
			request.Spend(r.Context(), request.MutatingWebhooks, time.Second)
			request.Spend(r.Context(), request.MutatingWebhooks, 2*time.Second)
			request.Spend(r.Context(), request.ValidatingWebhooks, 2*time.Second)
			request.Spend(r.Context(), request.ValidatingWebhooks, time.Second)
			request.Spend(r.Context(), request.Storage, 100*time.Millisecond)
			now = now.Add(6 * time.Second)
		case "quick":
			request.Spend(r.Context(), request.MutatingWebhooks, time.Millisecond)
		}
		w.WriteHeader(http.StatusCreated)
	}, func(c *Config) {
		c.Audit, c.Now = a, func() time.Time { return now }
		c.RequestTimeout = 1e6 * time.Hour // the clock stands in 1970
		c.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelInfo}))
		c.Served = func(*request.Info) bool { return true }
		c.Metrics = registry
	})
	servetest.Do(h, "PUT", "/api/v1/pods/slow")
	servetest.Do(h, "PUT", "/api/v1/pods/quick")
	if err := a.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range events() {
		for key, value := range e.Annotations {
			if name, ok := strings.CutPrefix(key, "apiserver.latency.k8s.io/"); ok {
				if !strings.HasSuffix(e.RequestURI, "/slow") {
					t.Errorf("%s of %s", key, e.RequestURI)
				}
				got[name] = value
			}
		}
	}
	for name, want := range map[string]string{
		"mutating-webhook": "3s", "validating-webhook": "2s", "etcd": "100ms", "total": "6s", "authentication": "",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "apiserver_request_sli_duration_seconds" {
			// the slow request without three and two seconds of webhooks, the other without a millisecond
			if sum := f.Metric[0].Histogram.GetSampleSum(); sum != 1-0.001 {
				t.Errorf("%v seconds are the server's own", sum)
			}
		}
	}
	line := `msg="slow request" verb=PUT URI=/api/v1/pods/slow latency=6s`
	if log := logged.String(); !strings.Contains(log, line) || !strings.Contains(log, "mutating-webhook=3s") ||
		strings.Contains(log, "quick") {
		t.Errorf("log %s", log)
	}
}

// TestUntraced checks that no spans start without a tracer or for a request that is not sampled.
func TestUntraced(t *testing.T) {
	t.Parallel()
	for name, traced := range map[string]bool{"off": false, "not sampled": true} {
		var scope *request.Scope
		h := newChain(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
			scope = request.ScopeOf(r.Context())
			_, span := request.StartSpan(r.Context(), "below")
			span.End()
			_, _ = w.Write([]byte("ok"))
		}, func(c *Config) {
			if traced {
				c.Tracer = noop.NewTracerProvider().Tracer("test")
			}
		})
		if w := servetest.Do(h, "GET", "/api/v1/pods"); w.Code != http.StatusOK || scope.Tracer != nil {
			t.Errorf("%s: %d %v", name, w.Code, scope.Tracer)
		}
	}
}
