package token

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/bowsprit/bowsprit/internal/testing/issuer"
)

// refuseAll accepts no token.
type refuseAll struct{}

func (refuseAll) AuthenticateToken(context.Context, string) (*authenticator.Response, bool, error) {
	return nil, false, nil
}

// entry is an issuer of an AuthenticationConfiguration, with more lines below it.
func entry(i *issuer.Issuer, more string) string {
	ca, _ := json.Marshal(string(i.CA))
	if more == "" {
		more = `claimMappings: {username: {claim: sub, prefix: ""}}`
	}
	return fmt.Sprintf("- issuer: {url: %s, audiences: [kubernetes, other], audienceMatchPolicy: MatchAny, certificateAuthority: %s}\n%s",
		i.URL, ca, indent(more))
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

func file(version string, entries ...string) string {
	return "apiVersion: apiserver.config.k8s.io/" + version + "\nkind: AuthenticationConfiguration\njwt:\n" +
		strings.Join(entries, "")
}

func TestConfigurationFile(t *testing.T) {
	t.Parallel()
	a, b := issuer.New(t), issuer.New(t)
	cel := `
claimValidationRules:
- expression: 'claims.tier in ["gold", "silver"]'
  message: only the rich
claimMappings:
  username: {expression: '"b:" + claims.sub'}
  groups: {expression: 'claims.roles'}
  uid: {expression: 'claims.?id.orValue("")'}
  extra:
  - {key: example.com/tier, valueExpression: claims.tier}
userValidationRules:
- expression: '!user.username.startsWith("b:system:")'
  message: no system user
`
	for _, version := range []string{"v1", "v1beta1"} {
		text := file(version, entry(a, ""), entry(b, cel)) + "anonymous: {enabled: true, conditions: [{path: /livez}]}\n"
		r := open(t, Config{File: write(t, "file", []byte(text))})
		for _, tc := range []struct{ name, token, want string }{
			{"first", a.Sign(nil), "jane   here,there"},
			{"another audience", a.Sign(claims{"aud": "other"}), "jane   here,there"},
			{"second", b.Sign(claims{"tier": "gold", "roles": []string{"x", "y"}, "id": "7"}),
				"b:jane 7 x,y map[example.com/tier:[gold]] here,there"},
			{"a rule about claims", b.Sign(claims{"tier": "tin", "roles": []string{"x"}}),
				"error: oidc: error evaluating claim validation expression: validation expression 'claims.tier in [\"gold\", \"silver\"]' failed: only the rich"},
			{"a rule about the user", b.Sign(claims{"sub": "system:x", "tier": "gold", "roles": []string{"x"}}),
				"error: oidc: error evaluating user info validation rule: validation expression '!user.username.startsWith(\"b:system:\")' failed: no system user"},
			{"a claim that is missing", b.Sign(claims{"tier": "gold"}),
				"error: oidc: error evaluating group claim expression: expression 'claims.roles' resulted in error: no such key: roles"},
		} {
			if got := ask(t, r, tc.token); got != tc.want {
				t.Errorf("%s: %s: got %q, want %q", version, tc.name, got, tc.want)
			}
		}
		enabled, paths, configured := r.Anonymous()
		if !enabled || !configured || len(paths) != 1 || paths[0] != "/livez" {
			t.Errorf("%s: anonymous %v %v %v", version, enabled, paths, configured)
		}
	}
}

func TestConfigurationErrors(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	for _, tc := range []struct{ name, text, want string }{
		{"empty", "", "failed to load authentication configuration from file %q: empty config data"},
		{"no configuration", "a", "failed to load authentication configuration from file %q: couldn't get version/kind; json parse error"},
		{"another kind", "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n",
			"failed to load authentication configuration from file %q: expected AuthenticationConfiguration, got *apiserver.AuthorizationConfiguration"},
		{"unknown field", file("v1") + "x: 1\n", `strict decoding error: unknown field "x"`},
		{"issuer without TLS", file("v1", strings.ReplaceAll(entry(i, ""), "https:", "http:")),
			"invalid authentication configuration: jwt[0].issuer.url: Invalid value"},
		{"twice", file("v1", entry(i, ""), entry(i, "")),
			"invalid authentication configuration: jwt[1].issuer.url: Duplicate value"},
		{"the server itself", file("v1", strings.ReplaceAll(entry(i, ""), i.URL, "https://own")),
			"jwt[0].issuer.url: Invalid value: \"https://own\": URL must not overlap with disallowed issuers: [https://own]"},
		{"no expression", file("v1", entry(i, "claimMappings: {username: {expression: 'claims.'}}")),
			"jwt[0].claimMappings.username.expression: Invalid value"},
		{"anonymous without", file("v1") + "anonymous: {enabled: false, conditions: [{path: /}]}\n",
			"anonymous.conditions: Invalid value"},
		{"egress", file("v1", strings.ReplaceAll(entry(i, ""), "issuer: {", "issuer: {egressSelectorType: cluster, ")),
			`oidc: egress lookup required with egress selector type "cluster"`},
	} {
		path := write(t, "file", []byte(tc.text))
		want := strings.ReplaceAll(tc.want, "%q", fmt.Sprintf("%q", path))
		r, err := Open(Config{File: path, Own: []string{"https://own"}, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, want)
		}
	}
}

// TestReload checks that a changed file applies after Reload, and that an invalid one changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	a, b := issuer.New(t), issuer.New(t)
	registry := prometheus.NewRegistry()
	path := write(t, "file", []byte(file("v1", entry(a, ""))))
	r := open(t, Config{File: path, Metrics: registry, ServerID: "me"})
	now := time.Unix(1e9, 0)
	r.now = func() time.Time { return now }
	names := 0
	known := func(i *issuer.Issuer) bool {
		names++ // so that no result is cached
		got := ask(t, r, i.Sign(claims{"sub": fmt.Sprint("user", names)}))
		return got == fmt.Sprintf("user%d   here,there", names)
	}
	for _, step := range []struct {
		name             string
		change           func()
		a, b             bool
		success, failure float64
	}{
		{"unchanged", func() {}, true, false, 0, 0},
		{"one more", func() { rewrite(t, path, file("v1", entry(a, ""), entry(b, ""))) }, true, true, 1, 0},
		{"not readable", func() { rewrite(t, path, "x: [") }, true, true, 1, 1},
		{"still not readable", func() {}, true, true, 1, 1},
		{"not valid", func() { rewrite(t, path, file("v1", entry(a, "claimMappings: {}"))) }, true, true, 1, 2},
		{"says something of anonymous requests", func() {
			rewrite(t, path, file("v1", entry(a, ""))+"anonymous: {enabled: false}\n")
		}, true, true, 1, 3},
		{"an issuer that is down", func() {
			b.Break(true)
			r.health.most = time.Nanosecond
			rewrite(t, path, file("v1beta1", entry(b, "")))
		}, true, true, 1, 4},
		{"not tried again at once", func() {}, true, true, 1, 4},
		{"a minute later", func() {
			b.Break(false)
			r.health.most = time.Minute
			now = now.Add(retryEvery)
		}, false, true, 2, 4},
		{"none", func() { rewrite(t, path, file("v1")) }, false, false, 3, 4},
		{"no file", func() { remove(t, path) }, false, false, 3, 5},
		{"still no file", func() {}, false, false, 3, 5},
		{"no file a minute later", func() { now = now.Add(retryEvery) }, false, false, 3, 6},
		{"there again", func() { rewrite(t, path, file("v1")) }, false, false, 3, 6},
		{"gone again", func() { remove(t, path) }, false, false, 3, 7},
	} {
		step.change()
		r.Reload(t.Context())
		if knowsA, knowsB := known(a), known(b); knowsA != step.a || knowsB != step.b {
			t.Errorf("%s: the first is known: %v, the second %v; want %v, %v", step.name, knowsA, knowsB, step.a, step.b)
		}
		for status, want := range map[string]float64{"success": step.success, "failure": step.failure} {
			if got := value(t, r.metrics.reloads.WithLabelValues(status, hash("me"))); got != want {
				t.Errorf("%s: %v reloads with %s, want %v", step.name, got, status, want)
			}
		}
	}
	if got := value(t, r.metrics.info.WithLabelValues(hash("me"), hash(file("v1")))); got != 1 {
		t.Errorf("the content in force has the value %v", got)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// value returns that of a counter or gauge.
func value(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var got dto.Metric
	if err := m.Write(&got); err != nil {
		t.Fatal(err)
	}
	return got.GetCounter().GetValue() + got.GetGauge().GetValue()
}

// TestRetirements checks that postponed work runs at the end, once.
func TestRetirements(t *testing.T) {
	t.Parallel()
	var r retirements
	done := 0
	r.after(time.Hour, func() { done++ })
	r.after(time.Hour, func() { done++ })
	r.stop()
	r.stop()
	if done != 2 {
		t.Errorf("%d done", done)
	}
}
