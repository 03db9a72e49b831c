package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/bowsprit/bowsprit/internal/testing/issuer"
)

// open returns a Remote with issuers that are ready.
func open(t *testing.T, c Config) *Remote {
	t.Helper()
	if c.Audiences == nil {
		c.Audiences = []string{"here", "there"}
	}
	c.Log = slog.New(slog.DiscardHandler)
	r, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	if err := r.health.wait(t.Context(), r.issuers.Load()); err != nil {
		t.Fatal(err)
	}
	return r
}

// ask returns "name uid groups audiences", "none" or "error: text".
func ask(t *testing.T, r *Remote, token string, wanted ...string) string {
	t.Helper()
	u, good, err := r.Authenticate(t.Context(), token, wanted)
	switch {
	case err != nil:
		return "error: " + err.Error()
	case u == nil:
		return "none"
	}
	return describe(u) + " " + strings.Join(good, ",")
}

func describe(u user.Info) string {
	text := fmt.Sprintf("%s %s %s", u.GetName(), u.GetUID(), strings.Join(u.GetGroups(), ","))
	if len(u.GetExtra()) > 0 {
		text += fmt.Sprint(" ", u.GetExtra())
	}
	return text
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	rewrite(t, file, string(data))
	return file
}

func rewrite(t *testing.T, file, data string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

type claims = map[string]any

// TestIssuerOfFlags checks tokens of an issuer configured by the flags --oidc-*, and all kinds of invalid ones.
func TestIssuerOfFlags(t *testing.T) {
	t.Parallel()
	i, other := issuer.New(t), issuer.New(t)
	flags := OIDC{
		IssuerURL: i.URL, ClientID: "kubernetes", CAFile: write(t, "ca", i.CA), SigningAlgs: []string{"ES256"},
		GroupsClaim: "groups", GroupsPrefix: "oidc:", RequiredClaims: map[string]string{"tier": "gold"},
	}
	r := open(t, Config{OIDC: flags})
	public, err := x509.MarshalPKIXPublicKey(&i.Key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	gold := func(more claims) claims {
		c := claims{"tier": "gold", "groups": []string{"dev"}}
		for name, value := range more {
			c[name] = value
		}
		return c
	}
	good := i.Sign(gold(nil))
	parts := strings.Split(good, ".")
	jane := i.URL + "#jane  oidc:dev here,there"
	for _, tc := range []struct{ name, token, want string }{
		{"good", good, jane},
		{"several audiences", i.Sign(gold(claims{"aud": []string{"x", "kubernetes"}})), jane},
		{"one group", i.Sign(gold(claims{"groups": "ops"})), i.URL + "#jane  oidc:ops here,there"},
		{"no groups", i.Sign(claims{"tier": "gold"}), i.URL + "#jane   here,there"},
		{"no token", "secret", "none"},
		{"three parts", "a.b.c", "none"},
		{"another issuer", other.Sign(gold(nil)), "none"},
		{"another issuer's key", issuer.Sign(jwt.SigningMethodES256, other.Key, i.Claims(gold(nil))),
			"error: oidc: verify token: failed to verify signature: failed to verify id token signature"},
		{"unknown key", issuer.Sign(jwt.SigningMethodES256, stranger, i.Claims(gold(nil))),
			"error: oidc: verify token: failed to verify signature"},
		{"no signature", issuer.Sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, i.Claims(gold(nil))),
			"error: oidc: verify token: "},
		{"signed with the public key", issuer.Sign(jwt.SigningMethodHS256, public, i.Claims(gold(nil))),
			"error: oidc: verify token: "},
		{"signature of another token", strings.Join([]string{
			parts[0], strings.Split(i.Sign(gold(claims{"sub": "admin"})), ".")[1], parts[2],
		}, "."), "error: oidc: verify token: failed to verify signature"},
		{"signature cut off", parts[0] + "." + parts[1] + ".", "error: oidc: verify token: "},
		{"another audience", i.Sign(gold(claims{"aud": "x"})), "error: oidc: verify token: oidc: expected audience"},
		{"expired", i.Sign(gold(claims{"exp": time.Now().Add(-time.Hour).Unix()})),
			"error: oidc: verify token: oidc: token is expired"},
		{"not yet", i.Sign(gold(claims{"nbf": time.Now().Add(time.Hour).Unix()})), "error: oidc: verify token: "},
		{"without what is required", i.Sign(nil), "error: oidc: required claim tier not present in ID token"},
		{"with another value of it", i.Sign(claims{"tier": "tin"}),
			"error: oidc: required claim tier value does not match. Got = tin, want = gold"},
		{"name that is no text", i.Sign(gold(claims{"sub": 1})), "error: oidc: verify token: "},
	} {
		if got := ask(t, r, tc.token); got != tc.want &&
			!(strings.HasPrefix(tc.want, "error: ") && strings.HasPrefix(got, tc.want)) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	for _, tc := range []struct {
		wanted []string
		want   string
	}{
		{[]string{"there", "x", "here"}, i.URL + "#jane  oidc:dev there,here"},
		{[]string{"x"}, "none"},
	} {
		if got := ask(t, r, good, tc.wanted...); got != tc.want {
			t.Errorf("audiences %v: got %q, want %q", tc.wanted, got, tc.want)
		}
	}
}

// TestAcceptedTokensAreRemembered checks that an accepted token is cached for some seconds, and a refused one is not.
func TestAcceptedTokensAreRemembered(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	r := open(t, Config{OIDC: OIDC{
		IssuerURL: i.URL, ClientID: "kubernetes", CAFile: write(t, "ca", i.CA), SigningAlgs: []string{"ES256"},
		UsernamePrefix: "-",
	}})
	good, bad := i.Sign(nil), i.Sign(claims{"aud": "x"})
	ask(t, r, good)
	ask(t, r, bad)
	r.issuers.Store(&issuers{all: refuseAll{}, end: func() {}})
	if got := ask(t, r, good); got != "jane   here,there" {
		t.Errorf("got %q", got)
	}
	if got := ask(t, r, bad); got != "none" {
		t.Errorf("a refused token: got %q", got)
	}
	if got := ask(t, r, good, "here"); got != "none" {
		t.Errorf("for other audiences: got %q", got)
	}
}

func TestNothingConfigured(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{{}, {OIDC: OIDC{IssuerURL: "https://a"}}, {OIDC: OIDC{SigningAlgs: []string{"RS256"}}}} {
		if r, err := Open(c); r != nil || err != nil {
			t.Errorf("%+v: %v, %v", c, r, err)
		}
	}
	var none *Remote
	if _, _, configured := none.Anonymous(); configured {
		t.Error("no file says something of anonymous requests")
	}
}

// TestLibraryMetrics checks that the libraries' metrics are shown.
func TestLibraryMetrics(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	r := open(t, Config{OIDC: OIDC{
		IssuerURL: i.URL, ClientID: "kubernetes", CAFile: write(t, "ca", i.CA), SigningAlgs: []string{"ES256"},
	}})
	ask(t, r, i.Sign(nil))
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		if slices.ContainsFunc(LibraryMetrics(), func(b string) bool { return strings.HasPrefix(f.GetName(), b) }) {
			names = append(names, f.GetName())
		}
	}
	for _, want := range []string{
		"apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
		"apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
		"apiserver_authentication_jwt_authenticator_latency_seconds", "authentication_token_cache_active_fetch_count",
		"authentication_token_cache_fetch_total", "authentication_token_cache_request_duration_seconds",
		"authentication_token_cache_request_total",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("no metric %s among %v", want, names)
		}
	}
}
