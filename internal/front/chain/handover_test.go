package chain

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/front/audit"
	"github.com/bowsprit/bowsprit/internal/front/flow"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/handover"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

// taking is the ResponseWriter of a connection that takes responses over.
type taking struct {
	*httptest.ResponseRecorder
	rest handover.Rest
}

func (w *taking) TakeOver(rest handover.Rest) handover.Stream {
	w.rest = rest
	return w
}
func (w *taking) Wake()      {}
func (w *taking) Full() bool { return false }

// rest is a handover.Rest of a test.
type rest struct {
	turn func()
	over func()
}

func (r rest) Turn(time.Time) (time.Time, bool) { r.turn(); return time.Time{}, false }
func (r rest) Over()                            { r.over() }

func asRoot(target string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Test-User", "root")
	return r
}

// TestHandover checks that the ends of the steps run when a response that was handed over has ended, not when its
// handler returns.
func TestHandover(t *testing.T) {
	t.Parallel()
	for _, panics := range []bool{false, true} {
		t.Run(fmt.Sprintf("panic %t", panics), func(t *testing.T) {
			t.Parallel()
			a, events := newAuditor(t, "- level: None\n  nonResourceURLs: [/metrics]\n- level: Metadata\n", "",
				audit.ModeBlockingStrict)
			var ctx context.Context
			var writer io.Writer
			over := func() {
				if ctx.Err() != nil {
					t.Error("the context has ended before Over")
				}
			}
			turn := func() {
				if panics {
					panic("boom")
				}
				_, _ = io.WriteString(writer, "event")
			}
			h := newChain(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
				ctx, writer = r.Context(), w
				w.WriteHeader(http.StatusOK)
				if handover.To(w, rest{turn, over}) == nil {
					t.Error("the response was not handed over")
				}
			}, func(c *Config) { c.Audit = a })
			w := &taking{ResponseRecorder: httptest.NewRecorder()}
			h.ServeHTTP(w, asRoot("/api/v1/pods?watch=1"))
			stages := func() (out []string) {
				for _, e := range events() {
					out = append(out, string(e.Stage))
				}
				return out
			}
			if got := stages(); !slices.Equal(got, []string{"RequestReceived", "ResponseStarted"}) {
				t.Errorf("the stages at first are %q", got)
			}
			if ctx.Err() != nil {
				t.Error("the context has ended with the handler")
			}
			const gauge = `apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="cluster",` +
				`subresource="",verb="WATCH",version="v1"}`
			metric := func(line string, want bool) {
				t.Helper()
				if text := servetest.Do(h, "GET", "/metrics").Body.String(); strings.Contains(text, line) != want {
					t.Errorf("the metrics have %q: %t", line, !want)
				}
			}
			metric(gauge+" 1", true)
			const total = `apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",`
			metric(total, false)
			func() {
				defer func() {
					if cause := recover(); (cause != nil) != panics || panics && cause != http.ErrAbortHandler {
						t.Errorf("the turn ended with %v", cause)
					}
				}()
				w.rest.Turn(time.Time{})
			}()
			if got := w.Body.String(); got != "event" && !panics {
				t.Errorf("the turn has written %q", got)
			}
			w.rest.Over()
			want := []string{"RequestReceived", "ResponseStarted", "ResponseComplete"}
			if panics {
				want[2] = "Panic"
			}
			if got := stages(); !slices.Equal(got, want) {
				t.Errorf("the stages are %q", got)
			}
			if ctx.Err() == nil {
				t.Error("the context has not ended")
			}
			metric(gauge+" 0", true)
			metric(total, true)
			metric("apiserver_request_aborts_total{", panics)
			if err := a.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestHandoverAtShutdown checks that the context of a response that was handed over ends with the chain.
func TestHandoverAtShutdown(t *testing.T) {
	t.Parallel()
	var ctx context.Context
	h := newChain(t, func(w http.ResponseWriter, r *http.Request, _ *request.Info, _ user.Info) {
		ctx = r.Context()
		w.WriteHeader(http.StatusOK)
		handover.To(w, rest{func() {}, func() {}})
	}, nil)
	w := &taking{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(w, asRoot("/api/v1/pods?watch=1"))
	if ctx.Err() != nil {
		t.Error("the context has ended with the handler")
	}
	h.Close()
	<-ctx.Done()
	w.rest.Over()
}

// TestNoHandover checks that the handler serves a response to its end if the chain or the connection cannot.
func TestNoHandover(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, target string
		begin        bool
		w            http.ResponseWriter
		change       func(*Config)
	}{
		{"a request with a time limit", "/api/v1/pods", true, &taking{ResponseRecorder: httptest.NewRecorder()}, nil},
		{"no response yet", "/api/v1/pods?watch=1", false, &taking{ResponseRecorder: httptest.NewRecorder()}, nil},
		{"another connection", "/api/v1/pods?watch=1", true, httptest.NewRecorder(), nil},
		{
			"traces", "/api/v1/pods?watch=1", true, &taking{ResponseRecorder: httptest.NewRecorder()},
			func(c *Config) { c.Tracer = noop.NewTracerProvider().Tracer("") },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			called := false
			h := newChain(t, func(w http.ResponseWriter, _ *http.Request, _ *request.Info, _ user.Info) {
				called = true
				if c.begin {
					w.WriteHeader(http.StatusOK)
				}
				if handover.To(w, rest{}) != nil {
					t.Error("it was handed over")
				}
			}, c.change)
			h.ServeHTTP(c.w, asRoot(c.target))
			if !called {
				t.Error("the handler was not called")
			}
		})
	}
}

// TestHandoverCountsWatches checks that a watch counts in the cost of writes until its response has ended.
func TestHandoverCountsWatches(t *testing.T) {
	t.Parallel()
	var final int
	h := newChain(t, func(w http.ResponseWriter, r *http.Request, info *request.Info, _ user.Info) {
		if info.Verb != "watch" {
			_, final, _ = request.ScopeOf(r.Context()).Waits.Seat.(*flow.Ticket).Cost()
			return
		}
		w.WriteHeader(http.StatusOK)
		request.Release(r.Context())
		handover.To(w, rest{func() {}, func() {}})
	}, func(c *Config) { c.Flow = flow.New(flow.Options{Total: 100}) })
	watches := make([]*taking, 20)
	for i := range watches {
		watches[i] = &taking{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(watches[i], asRoot("/api/v1/pods?watch=1"))
	}
	for _, counted := range []bool{true, false} {
		if servetest.Do(h, "POST", "/api/v1/namespaces/default/pods"); (final > 0) != counted {
			t.Errorf("counted %t: a write has %d seats at the end", counted, final)
		}
		for _, w := range watches {
			if counted {
				w.rest.Over()
			}
		}
	}
}
