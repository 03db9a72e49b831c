package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/bowsprit/bowsprit/internal/request"
)

var silent = slog.New(slog.DiscardHandler)

// options are the defaults of kube-apiserver, with a policy and a log.
func options(t *testing.T, policy string) Options {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(head+policy), 0o600); err != nil {
		t.Fatal(err)
	}
	sizes := TruncateOptions{TruncateConfig: TruncateConfig{MaxBatchSize: 10 << 20, MaxEventSize: 100 << 10}}
	return Options{
		PolicyFile: file,
		Log: LogOptions{
			Path: filepath.Join(dir, "audit.log"), Format: FormatJSON, Version: "audit.k8s.io/v1", MaxSize: 100,
			Mode: ModeBlocking, Batch: BatchConfig{BufferSize: 10000, MaxBatchSize: 1}, Truncate: sizes,
		},
		Webhook: WebhookOptions{
			Version: "audit.k8s.io/v1", InitialBackoff: time.Millisecond, Mode: ModeBatch,
			Batch: BatchConfig{
				BufferSize: 10000, MaxBatchSize: 400, MaxBatchWait: time.Hour, AsyncDelegate: true,
			},
			Truncate: sizes,
		},
	}
}

// start returns a running Auditor. It is shut down at the end of the test, at the latest.
func start(t *testing.T, o Options) *Auditor {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	a, err := New(o, silent)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Run(); err != nil {
		t.Fatal(err)
	}
	return a
}

func stop(t *testing.T, a *Auditor) {
	t.Helper()
	if err := a.Shutdown(t.Context()); err != nil {
		t.Errorf("shut down: %v", err)
	}
}

// received is a request for objects, or for a path.
func received(t *testing.T, method, target string) Received {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = "10.1.2.3:4567"
	r.Header.Set("User-Agent", "test")
	info, err := request.Parse(r)
	if err != nil {
		t.Fatal(err)
	}
	return Received{
		HTTP: r, Info: info, User: &user.DefaultInfo{Name: "jane", Groups: []string{"dev"}}, ID: "id", At: time.Now(),
	}
}

// logged returns the events in the log.
func logged(t *testing.T, o Options) []auditv1.Event {
	t.Helper()
	text, err := os.ReadFile(o.Log.Path)
	if err != nil {
		t.Fatal(err)
	}
	var out []auditv1.Event
	for line := range strings.Lines(string(text)) {
		var e auditv1.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}

// lostBy returns how many events a plugin has lost in this process.
func lostBy(t *testing.T, plugin string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if !slices.Contains(LibraryMetrics(), family.GetName()) {
			continue
		}
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == plugin {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestOffWithoutPolicyOrBackend(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{}, {PolicyFile: options(t, "rules: [{level: Metadata}]").PolicyFile}, {Log: LogOptions{Path: "/nowhere"}},
		{Webhook: WebhookOptions{ConfigFile: "/nowhere"}},
	} {
		if a, err := New(o, silent); a != nil || err != nil {
			t.Errorf("%+v: %v, %v", o, a, err)
		}
	}
	if _, err := New(Options{PolicyFile: "/nowhere"}, silent); err == nil {
		t.Error("a policy that is not there is accepted, as nothing is recorded")
	}
}

func TestStages(t *testing.T) {
	t.Parallel()
	o := options(t, `
omitStages: [Panic]
rules:
- level: None
  nonResourceURLs: [/healthz]
- level: Metadata
  omitStages: [RequestReceived]
  verbs: [list]
- level: Metadata
`)
	a := start(t, o)
	if a.Begin(received(t, "GET", "/healthz")) != nil {
		t.Error("what the policy does not want is recorded")
	}
	get := a.Begin(received(t, "GET", "/api/v1/namespaces/default/secrets/s"))
	get.RequestReceived()
	get.ResponseStarted(http.StatusOK)
	get.ResponseStarted(http.StatusTeapot) // no effect any more
	get.ResponseComplete(time.Now())
	list := a.Begin(received(t, "GET", "/api/v1/secrets"))
	list.RequestReceived()
	list.ResponseStarted(http.StatusOK)
	list.ResponseComplete(time.Now())
	long := received(t, "GET", "/api/v1/secrets?watch=1")
	long.LongRunning = true
	watch := a.Begin(long)
	watch.RequestReceived()
	watch.ResponseStarted(http.StatusOK)
	watch.ResponseComplete(time.Now())
	gone := a.Begin(long)
	gone.ResponseComplete(time.Now())
	bad := a.Begin(received(t, "GET", "/version"))
	bad.RequestReceived()
	bad.Panicked(errors.New("boom"))
	stop(t, a)

	var got []string
	for _, e := range logged(t, o) {
		text := fmt.Sprintf("%s %s", e.Verb, e.Stage)
		if e.ResponseStatus != nil {
			text += fmt.Sprintf(" %d %s", e.ResponseStatus.Code, e.ResponseStatus.Message)
		}
		got = append(got, strings.TrimSpace(text))
	}
	want := []string{
		"get RequestReceived", "get ResponseComplete 200", "list ResponseComplete 200",
		"watch RequestReceived", "watch ResponseStarted 200", "watch ResponseComplete 200",
		"watch ResponseStarted 200 Connection closed early", "watch ResponseComplete 200 Connection closed early",
		"get RequestReceived",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// secret returns the request and response object of TestLevels.
func secret() map[string]any {
	return map[string]any{
		"kind": "Secret", "apiVersion": "v1", "data": map[string]any{"password": "czNjcjN0"},
		"metadata": map[string]any{"name": "s", "uid": "u", "resourceVersion": "7", "managedFields": []any{"m"}},
	}
}

// TestLevels checks which parts of a write each level records.
func TestLevels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, request, response string }{
		{"level: Metadata", "", ""},
		{"level: Request", `{"apiVersion":"v1","data":{"password":"czNjcjN0"},"kind":"Secret",` +
			`"metadata":{"managedFields":["m"],"name":"s","resourceVersion":"7","uid":"u"}}`, ""},
		{"level: RequestResponse, omitManagedFields: true", `{"apiVersion":"v1","data":{"password":"czNjcjN0"},` +
			`"kind":"Secret","metadata":{"name":"s","resourceVersion":"7","uid":"u"}}`,
			`{"kind":"SecretList","items":[{"metadata":{}}]}`},
		{"level: RequestResponse, omitManagedFields: true, changes: JSONPatch", "",
			`[{"op":"replace","path":"/data/password","value":"bmV3"}]`},
	} {
		o := options(t, "rules:\n- {"+c.rule+"}\n")
		a := start(t, o)
		rec := a.Begin(received(t, "PUT", "/api/v1/namespaces/default/secrets/s"))
		rec.RequestObject(secret())
		rec.ResponseObject([]byte(`{"kind":"SecretList","items":[{"metadata":{"managedFields":[1]}}]}`))
		after := secret()
		after["data"] = map[string]any{"password": "bmV3"}
		rec.Changed(secret(), after)
		rec.ResponseStarted(http.StatusOK)
		rec.ResponseComplete(time.Now())
		stop(t, a)

		events := logged(t, o)
		if len(events) != 1 {
			t.Fatalf("%s: %d events", c.rule, len(events))
		}
		e := events[0]
		if got := rawOf(t, e, "requestObject"); got != c.request {
			t.Errorf("%s: requestObject %s, want %s", c.rule, got, c.request)
		}
		if got := rawOf(t, e, "responseObject"); !sameJSON(got, c.response) {
			t.Errorf("%s: responseObject %s, want %s", c.rule, got, c.response)
		}
		if ref := e.ObjectRef; ref.Name != "s" || ref.UID != "u" || ref.ResourceVersion != "7" && c.request != "" {
			t.Errorf("%s: objectRef %+v", c.rule, ref)
		}
		_, marked := e.Annotations[PatchAnnotation]
		if marked != strings.Contains(c.rule, "changes") {
			t.Errorf("%s: annotations %v", c.rule, e.Annotations)
		}
	}
}

func rawOf(t *testing.T, e auditv1.Event, field string) string {
	t.Helper()
	raw, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	return string(fields[field])
}

func sameJSON(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

// TestSecretsStayOut makes every possible call on a Record at the level Metadata, and searches the log for a secret
// word.
func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	o := options(t, "rules:\n- level: Metadata\n")
	a := start(t, o)
	rec := a.Begin(received(t, "POST", "/api/v1/namespaces/default/secrets"))
	rec.RequestReceived()
	rec.RequestObject(secret())
	rec.RequestBody([]byte(`{"data":{"password":"czNjcjN0"}}`))
	rec.ResponseObject([]byte(`{"data":{"password":"czNjcjN0"}}`))
	rec.Changed(nil, secret())
	rec.ResponseStatus(&metav1.Status{Code: 403, Message: "no"})
	rec.ResponseComplete(time.Now())
	stop(t, a)
	text, err := os.ReadFile(o.Log.Path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(`"name":"s"`)) || bytes.Contains(text, []byte("czNjcjN0")) {
		t.Errorf("the log says %s", text)
	}
}

// TestBodiesThatAreNoJSON records bodies that kube-apiserver loses.
func TestBodiesThatAreNoJSON(t *testing.T) {
	t.Parallel()
	o := options(t, "rules:\n- level: Request\n")
	a := start(t, o)
	for _, body := range []string{"a: 1\nb: [x]\n", "{", ` {"a": "<"}`} {
		rec := a.Begin(received(t, "PATCH", "/api/v1/namespaces/default/secrets/s"))
		rec.RequestBody([]byte(body))
		rec.ResponseComplete(time.Now())
	}
	stop(t, a)
	var got []string
	for _, e := range logged(t, o) {
		got = append(got, rawOf(t, e, "requestObject"))
	}
	want := []string{`{"a":1,"b":["x"]}`, `"{"`, `{"a":"\u003c"}`}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestFullDisk writes to a device that is always full.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	for mode, want := range map[string]bool{ModeBlocking: true, ModeBlockingStrict: false} {
		o := options(t, "rules:\n- level: Metadata\n")
		o.Log.Path, o.Log.Mode, o.Log.MaxSize = "/dev/full", mode, 0
		a := start(t, o)
		before := lostBy(t, "log")
		rec := a.Begin(received(t, "POST", "/api/v1/namespaces/default/secrets"))
		if got := rec.RequestReceived(); got != want {
			t.Errorf("%s: a request goes on: %v, want %v", mode, got, want)
		}
		if got := lostBy(t, "log") - before; got != 1 {
			t.Errorf("%s: %v events counted as lost, want 1", mode, got)
		}
		stop(t, a)
	}
}

// hook is a webhook that responds on command.
type hook struct {
	*httptest.Server
	called, proceed chan struct{}
	events          atomic.Int64
}

func newHook(t *testing.T, o *Options) *hook {
	t.Helper()
	h := &hook{called: make(chan struct{}, 100), proceed: make(chan struct{})} // more than any test calls
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		h.called <- struct{}{}
		select {
		case <-h.proceed:
		case <-r.Context().Done():
			return
		}
		var list auditv1.EventList
		if err := json.Unmarshal(body, &list); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		h.events.Add(int64(len(list.Items)))
	}))
	t.Cleanup(h.Close)
	file := filepath.Join(t.TempDir(), "webhook.kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"contexts":[{"name":"c","context":{"cluster":"c"}}],
		"clusters":[{"name":"c","cluster":{"server":%q}}]}`, h.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Webhook.ConfigFile, o.Log.Path = file, ""
	return h
}

// TestHangingWebhook checks that requests continue while the webhook hangs, that events beyond the buffer are counted,
// and that the rest is delivered at shutdown.
func TestHangingWebhook(t *testing.T) {
	o := options(t, "omitStages: [RequestReceived]\nrules:\n- level: Metadata\n")
	h := newHook(t, &o)
	o.Webhook.Batch = BatchConfig{BufferSize: 3, MaxBatchSize: 1, MaxBatchWait: time.Hour}
	a := start(t, o)
	before := lostBy(t, "buffered")
	end := func() { a.Begin(received(t, "GET", "/api/v1/secrets")).ResponseComplete(time.Now()) }
	end()
	<-h.called // the call in progress; the buffer is empty now
	for range 5 {
		end()
	}
	if got := lostBy(t, "buffered") - before; got != 2 {
		t.Errorf("%v events counted as lost, want 2", got)
	}
	close(h.proceed)
	stop(t, a)
	if got := h.events.Load(); got != 4 {
		t.Errorf("the webhook got %d events, want 4", got)
	}
}

// TestShutdownDoesNotWaitForEver checks that Shutdown abandons a hanging webhook.
func TestShutdownDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	o := options(t, "rules:\n- level: Metadata\n")
	h := newHook(t, &o)
	o.Webhook.Batch = BatchConfig{BufferSize: 3, MaxBatchSize: 1, MaxBatchWait: time.Hour}
	a := start(t, o)
	a.Begin(received(t, "GET", "/api/v1/secrets")).ResponseComplete(time.Now())
	<-h.called
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("shut down: %v", err)
	}
	close(h.proceed)
	a.backend.Shutdown() // leave no goroutine behind
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	o := options(t, "omitStages: [RequestReceived]\nrules:\n- level: Request\n")
	small := TruncateConfig{MaxBatchSize: 2000, MaxEventSize: 2000}
	o.Log.Truncate = TruncateOptions{Enabled: true, TruncateConfig: small}
	a := start(t, o)
	rec := a.Begin(received(t, "PUT", "/api/v1/namespaces/default/secrets/s"))
	rec.RequestBody([]byte(`"` + strings.Repeat("x", 3000) + `"`))
	rec.ResponseComplete(time.Now())
	stop(t, a)
	events := logged(t, o)
	if len(events) != 1 || events[0].RequestObject != nil || events[0].Annotations["audit.k8s.io/truncated"] != "true" {
		t.Errorf("events are %+v", events)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Log.Mode = "x" },
			`invalid audit log mode x, allowed modes are "batch,blocking,blocking-strict"`},
		{func(o *Options) { o.Log.Format = "xml" }, `invalid audit log format xml, allowed formats are "legacy,json"`},
		{func(o *Options) { o.Log.MaxAge = -1 }, `--audit-log-maxage -1 can't be a negative number`},
		{func(o *Options) { o.Log.MaxBackups = -1 }, `--audit-log-maxbackup -1 can't be a negative number`},
		{func(o *Options) { o.Log.MaxSize = -1 }, `--audit-log-maxsize -1 can't be a negative number`},
		{func(o *Options) { o.Log.Version = "audit.k8s.io/v1beta1" },
			`invalid group version, allowed versions are ["audit.k8s.io/v1"]`},
		{func(o *Options) { o.Log.Mode, o.Log.Batch.BufferSize = ModeBatch, 0 },
			`invalid audit batch log buffer size 0, must be a positive number`},
		{func(o *Options) { o.Log.Mode, o.Log.Batch.MaxBatchSize = ModeBatch, 0 },
			`invalid audit batch log max batch size 0, must be a positive number`},
		{func(o *Options) { o.Webhook.Batch.ThrottleEnable = true },
			`invalid audit batch webhook throttle QPS 0, must be a positive number`},
		{func(o *Options) { o.Webhook.Batch.ThrottleEnable, o.Webhook.Batch.ThrottleQPS = true, 1 },
			`invalid audit batch webhook throttle burst 0, must be a positive number`},
		{func(o *Options) { o.Log.Truncate.MaxEventSize = 0 },
			`invalid audit truncate log max event size 0, must be a positive number`},
		{func(o *Options) { o.Webhook.Truncate.MaxBatchSize = 1 }, `invalid audit truncate webhook max batch size 1, ` +
			`must be greater than max event size (102400)`},
	} {
		o := options(t, "rules:\n- level: None\n")
		o.Webhook.ConfigFile = "x"
		if err := o.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(&o)
		if err := o.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if err := (&Options{}).Validate(); err != nil {
		t.Errorf("what is not used: %v", err)
	}
}

func BenchmarkMetadata(b *testing.B) {
	evaluator, err := parsePolicy([]byte(head + "rules:\n- {level: None, users: [x]}\n- level: Metadata\n"))
	if err != nil {
		b.Fatal(err)
	}
	a := newAuditor(evaluator, &logBackend{out: io.Discard}, silent)
	r := httptest.NewRequest("GET", "/api/v1/namespaces/default/secrets/s", nil)
	info, err := request.Parse(r)
	if err != nil {
		b.Fatal(err)
	}
	in := Received{HTTP: r, Info: info, User: &user.DefaultInfo{Name: "jane", Groups: []string{"dev"}}, ID: "id"}
	b.ReportAllocs()
	for b.Loop() {
		rec := a.Begin(in)
		rec.RequestReceived()
		rec.Annotate("authorization.k8s.io/decision", "allow")
		rec.Annotate("authorization.k8s.io/reason", "")
		rec.ResponseStarted(200)
		rec.ResponseComplete(time.Now())
	}
}
