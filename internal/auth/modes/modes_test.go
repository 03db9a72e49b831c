package modes

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/request"
)

var (
	master = &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup}}
	bob    = &user.DefaultInfo{Name: "bob", UID: "7", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}}
)

func pods(verb string) *request.Info {
	return &request.Info{
		IsResource: true, Verb: verb, Version: "v1", Resource: "pods", Namespace: "n",
		Path: "/api/v1/namespaces/n/pods",
	}
}

// hook is a webhook with a configurable response.
type hook struct {
	kubeconfig string
	answer     func(authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus
	calls      atomic.Int32
	code       int // 200 if zero
	last       authorizationv1.SubjectAccessReview
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.calls.Add(1)
		h.last = authorizationv1.SubjectAccessReview{}
		if err := json.NewDecoder(r.Body).Decode(&h.last); err != nil {
			t.Error(err)
		}
		if h.code != 0 {
			w.WriteHeader(h.code)
			return
		}
		out := h.last
		out.Status = h.answer(out.Spec)
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(out); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	write(t, h.kubeconfig, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "`+server.URL+`"}}], users: [{name: u, user: {}}]}`)
	return h
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// config returns a configuration that names modes.
func config(names ...string) Config {
	return Config{
		Names: names, Metrics: prometheus.NewRegistry(), ServerID: "me", Now: time.Now,
		Log: slog.New(slog.DiscardHandler),
		Make: map[string]func() (authz.Mode, error){
			RBAC: func() (authz.Mode, error) { return authz.Union{}, nil },
		},
	}
}

func open(t *testing.T, c Config) *Modes {
	t.Helper()
	m, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ask(t *testing.T, m *Modes, u user.Info, info *request.Info) string {
	t.Helper()
	d, err := m.Authorize(t.Context(), u, info)
	return fmt.Sprintf("%s %q %v", map[authz.Verdict]string{
		authz.NoOpinion: "none", authz.Allow: "allow", authz.Deny: "deny",
	}[d.Verdict], d.Reason, err)
}

func expect(t *testing.T, desc, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s\nwant %s", desc, got, want)
	}
}

// TestWebhookByFlags calls a webhook as in --authorization-mode=Webhook,RBAC.
func TestWebhookByFlags(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	c := config(Webhook, RBAC)
	c.Webhook = WebhookConfig{KubeconfigFile: h.kubeconfig, Version: "v1", AuthorizedTTL: time.Hour}
	m := open(t, c)
	h.answer = func(s authorizationv1.SubjectAccessReviewSpec) (out authorizationv1.SubjectAccessReviewStatus) {
		out.Reason = "since " + s.User
		if a := s.ResourceAttributes; a != nil {
			out.Allowed, out.Denied = a.Verb == "get" || a.Verb == "both", a.Verb == "delete" || a.Verb == "both"
		}
		return out
	}
	expect(t, "allowed", ask(t, m, bob, pods("get")), `allow "since bob" <nil>`)
	expect(t, "allowed again", ask(t, m, bob, pods("get")), `allow "since bob" <nil>`)
	if n := h.calls.Load(); n != 1 {
		t.Errorf("%d calls: what is allowed is not kept", n)
	}
	expect(t, "denied", ask(t, m, bob, pods("delete")), `deny "since bob" <nil>`)
	expect(t, "no opinion", ask(t, m, bob, pods("list")), `none "default: since bob" <nil>`)
	expect(t, "no opinion again", ask(t, m, bob, pods("list")), `none "default: since bob" <nil>`)
	if n := h.calls.Load(); n != 4 {
		t.Errorf("%d calls: what is not allowed is kept", n)
	}
	expect(t, "both", ask(t, m, bob, pods("both")),
		`deny "since bob" webhook subject access review returned both allow and deny response`)
	expect(t, "master", ask(t, m, master, pods("delete")), `allow "" <nil>`)

	filtered := pods("watch")
	filtered.FieldSelector, filtered.LabelSelector = "spec.nodeName=n1,a!=b", "x in (y,z),!w"
	ask(t, m, bob, filtered)
	spec, err := json.Marshal(h.last.Spec)
	expect(t, "asked", fmt.Sprint(string(spec), err), `{"resourceAttributes":{"namespace":"n","verb":"watch",`+
		`"version":"v1","resource":"pods","fieldSelector":{"requirements":[`+
		`{"key":"a","operator":"NotIn","values":["b"]},{"key":"spec.nodeName","operator":"In","values":["n1"]}]},`+
		`"labelSelector":{"requirements":[{"key":"w","operator":"DoesNotExist"},`+
		`{"key":"x","operator":"In","values":["y","z"]}]}},"user":"bob","groups":["g"],"extra":{"k":["v"]},"uid":"7"}<nil>`)

	h.code = http.StatusForbidden
	if d, err := m.Authorize(t.Context(), bob, pods("patch")); d.Verdict != authz.NoOpinion || err == nil {
		t.Errorf("failing: %+v, %v", d, err)
	}
	rules, err := m.Rules(t.Context(), bob, "n")
	if !rules.Incomplete || err == nil || err.Error() != "webhook authorizer does not support user rule resolution" {
		t.Errorf("rules: %+v, %v", rules, err)
	}
	if err := testutil.GatherAndCompare(c.Metrics, strings.NewReader(`
# HELP apiserver_authorization_decisions_total Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.
# TYPE apiserver_authorization_decisions_total counter
apiserver_authorization_decisions_total{decision="allowed",name="default",type="Webhook"} 2
apiserver_authorization_decisions_total{decision="denied",name="default",type="Webhook"} 2
# HELP apiserver_authorization_webhook_evaluations_fail_open_total NoOpinion results due to webhook timeout or error.
# TYPE apiserver_authorization_webhook_evaluations_fail_open_total counter
apiserver_authorization_webhook_evaluations_fail_open_total{name="default",result="error"} 1
# HELP apiserver_authorization_webhook_evaluations_total Round-trips to authorization webhooks.
# TYPE apiserver_authorization_webhook_evaluations_total counter
apiserver_authorization_webhook_evaluations_total{name="default",result="error"} 1
apiserver_authorization_webhook_evaluations_total{name="default",result="success"} 6
`), "apiserver_authorization_decisions_total", "apiserver_authorization_webhook_evaluations_total",
		"apiserver_authorization_webhook_evaluations_fail_open_total"); err != nil {
		t.Error(err)
	}
}

const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: "

// seat counts the pauses of a request's seat.
type seat struct{ lent int }

func (s *seat) Pause()               { s.lent++ }
func (*seat) Resume()                {}
func (*seat) Yield(context.Context)  {}
func (*seat) Return(context.Context) {}
func (*seat) Release()               {}

// TestWebhookKeepsSeat checks that a request keeps its seats while a webhook authorizes it.
func TestWebhookKeepsSeat(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	h.answer = func(authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	}
	c := config(Webhook)
	c.Webhook = WebhookConfig{KubeconfigFile: h.kubeconfig, Version: "v1"}
	m := open(t, c)
	var s seat
	scope := &request.Scope{}
	scope.Waits.Seat = &s
	d, err := m.Authorize(request.NewContext(t.Context(), scope), bob, pods("get"))
	if err != nil || !d.Allowed() || h.calls.Load() != 1 || s.lent != 0 {
		t.Errorf("%v, %v after %d calls; the seat was lent %d times", d, err, h.calls.Load(), s.lent)
	}
}

// webhookText returns the configuration of a webhook authorizer.
func webhookText(kubeconfig, policy, conditions string) string {
	return "{type: Webhook, name: hook, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, " +
		"matchConditionSubjectAccessReviewVersion: v1, authorizedTTL: 1m, unauthorizedTTL: 1m, failurePolicy: " + policy +
		", connectionInfo: {type: KubeConfigFile, kubeConfigFile: " + kubeconfig + "}, matchConditions: " + conditions +
		"}}"
}

// inCluster is a webhook that passes the library's checks but cannot be called by an API server.
var inCluster = strings.Replace(webhookText("x", "Deny", "[]"), "{type: KubeConfigFile, kubeConfigFile: x}",
	"{type: InClusterConfig}", 1)

// TestQuantities has a condition parse quantities that the library would compute with for years.
func TestQuantities(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	h.answer = func(authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	}
	c := config()
	c.File = filepath.Join(t.TempDir(), "config")
	write(t, c.File, head+"["+webhookText(h.kubeconfig, "Deny",
		`[{expression: "quantity(request.user).isGreaterThan(quantity('1'))"}]`)+", {type: RBAC, name: rbac}]")
	m := open(t, c)
	expect(t, "a quantity", ask(t, m, &user.DefaultInfo{Name: "2"}, pods("get")), `allow "" <nil>`)
	d, err := m.Authorize(t.Context(), &user.DefaultInfo{Name: "1e-1000000000"}, pods("get"))
	if d.Verdict != authz.Deny || err == nil || !strings.Contains(err.Error(), "quantity: the text") {
		t.Errorf("a quantity with a large exponent: %+v, %v", d, err)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	h.answer = func(authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	}
	c := config()
	now := time.Now()
	c.Now = func() time.Time { return now }
	c.File = filepath.Join(t.TempDir(), "config")
	write(t, c.File, head+"["+webhookText(h.kubeconfig, "Deny",
		`[{expression: "request.user != 'eve'"}, {expression: "request.resourceAttributes.namespace == 'n'"}]`)+
		", {type: RBAC, name: rbac}]")
	m := open(t, c)
	expect(t, "matches", ask(t, m, bob, pods("get")), `allow "" <nil>`)
	expect(t, "does not match", ask(t, m, &user.DefaultInfo{Name: "eve"}, pods("get")), `none "" <nil>`)
	d, err := m.Authorize(t.Context(), bob, &request.Info{Verb: "get", Path: "/x"})
	if d.Verdict != authz.Deny || err == nil || !strings.Contains(err.Error(), "no such key: resourceAttributes") {
		t.Errorf("a condition fails: %+v, %v", d, err)
	}
	if n := h.calls.Load(); n != 1 {
		t.Errorf("%d calls", n)
	}

	before := m.current.Load()
	for _, broken := range []string{
		"", head + "[]", head + "[{type: RBAC, name: other}]", head + "[{type: AlwaysAllow, name: alwaysallow}]",
		head + "[{type: RBAC, name: rbac}, {type: ABAC, name: abac}]",
		head + "[{type: RBAC, name: rbac}, " + webhookText("/nowhere", "Deny", "[]") + "]",
		head + "[{type: RBAC, name: rbac}, " + inCluster + "]",
	} {
		write(t, c.File, broken)
		if m.Reload(); m.current.Load() != before {
			t.Errorf("in force: %s", broken)
		}
	}
	m.Reload() // repeated content is not a failure
	write(t, c.File, head+"[{type: AlwaysAllow, name: alwaysallow}, {type: RBAC, name: rbac}]")
	m.Reload()
	expect(t, "after a change", ask(t, m, bob, pods("delete")), `allow "" <nil>`)
	write(t, c.File, head+"[{type: RBAC, name: rbac}]")
	m.Reload()
	expect(t, "after the last change", ask(t, m, bob, pods("delete")), `none "" <nil>`)
	// A valid file that cannot be built counts as a change, and so does the way back.
	write(t, c.File, head+"[{type: RBAC, name: rbac}, "+inCluster+"]")
	m.Reload()
	write(t, c.File, head+"[{type: RBAC, name: rbac}]")
	m.Reload()
	if err := os.Remove(c.File); err != nil {
		t.Fatal(err)
	}
	m.Reload()
	m.Reload() // no new report
	now = now.Add(complainEvery)
	m.Reload()
	if n, err := testutil.GatherAndCount(c.Metrics, "apiserver_authorization_config_controller_last_config_info"); n != 1 {
		t.Errorf("%d series about the content: %v", n, err)
	}
	for status, want := range map[string]float64{"failure": 10, "success": 3} {
		if got := testutil.ToFloat64(m.metrics.reloads.WithLabelValues(status, hash("me"))); got != want {
			t.Errorf("%v reloads with %s, want %v", got, status, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"a":         "failed to load AuthorizationConfiguration from file",
		head + "[]": "authorizers: Required value: at least one authorization mode must be defined",
		head + "[{type: RBAC, name: one}, {type: Node, name: two}]": "expected name rbac for authorizer RBAC instead of one\n" +
			"expected name node for authorizer Node instead of two",
		head + "[{type: Webhook, name: w}]":                                       "authorizers[0].webhook: Required value: required when type=Webhook",
		head + "[" + webhookText("/nowhere", "Maybe", "[]") + "]":                 `Unsupported value: "Maybe"`,
		head + "[" + webhookText("/nowhere", "Deny", `[{expression: "1"}]`) + "]": "must evaluate to bool",
		head + "[" + inCluster + "]": "authorization webhook hook: " +
			"connectionInfo.type InClusterConfig is not for API servers",
	} {
		c := config()
		c.File = filepath.Join(t.TempDir(), "config")
		write(t, c.File, content)
		if _, err := Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", content, err, want)
		}
	}
	c := config(Webhook)
	c.Webhook = WebhookConfig{KubeconfigFile: newHook(t).kubeconfig, Version: "v2"}
	if _, err := Open(c); err == nil || !strings.Contains(err.Error(), `unsupported webhook authorizer version "v2"`) {
		t.Error(err)
	}
}
