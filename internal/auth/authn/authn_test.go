package authn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/request"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// sign returns a certificate for subject, valid for an hour from start; a nil authority signs itself.
func (a *authority) sign(t testing.TB, subject pkix.Name, change func(*x509.Certificate)) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: subject, NotBefore: start, NotAfter: start.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}
	if change != nil {
		change(template)
	}
	parent, signer := template, key
	if a != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return &authority{cert, key}
}

func newAuthority(t testing.TB, parent *authority, name string) *authority {
	return parent.sign(t, pkix.Name{CommonName: name}, func(c *x509.Certificate) {
		c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign
		c.NotAfter = start.Add(24 * time.Hour)
	})
}

func pool(authorities ...*authority) *x509.CertPool {
	p := x509.NewCertPool()
	for _, a := range authorities {
		p.AddCert(a.cert)
	}
	return p
}

func withCertificates(chain ...*authority) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.TLS = &tls.ConnectionState{}
	for _, a := range chain {
		r.TLS.PeerCertificates = append(r.TLS.PeerCertificates, a.cert)
	}
	return r
}

func withHeader(r *http.Request, key, value string) *http.Request {
	r.Header.Set(key, value)
	return r
}

// withProtocols returns a request for a WebSocket. "TOKEN:" encodes the rest of a protocol.
func withProtocols(protocols ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header = http.Header{"Connection": {"keep-alive, Upgrade"}, "Upgrade": {"websocket"}}
	for _, p := range protocols {
		if token, ok := strings.CutPrefix(p, "TOKEN:"); ok {
			p = tokenProtocol + base64.RawURLEncoding.EncodeToString([]byte(token))
		}
		r.Header.Add(protocolHeader, p)
	}
	return r
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	root, stranger := newAuthority(t, nil, "root"), newAuthority(t, nil, "stranger")
	middle := newAuthority(t, root, "middle")
	jane := pkix.Name{CommonName: "jane", Organization: []string{"dev", "ops"}}
	uid := func(values ...any) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			for _, v := range values {
				c.Subject.ExtraNames = append(c.Subject.ExtraNames, pkix.AttributeTypeAndValue{Type: uidOID, Value: v})
			}
		}
	}
	tokens, err := readTokens(
		strings.NewReader(
			"secret,bob,42,\"a,b\"\nplain,eve,7\nanon,system:anonymous,1\n,nobody,1\nsecret2,x,1\nsecret2,y,2\n"),
		slog.New(slog.DiscardHandler))
	must(t, err)
	roots := pool(root)
	a := New(Config{
		ClientRoots: func() *x509.CertPool { return roots }, Tokens: tokens,
		Now: func() time.Time { return start.Add(time.Minute) },
	})

	plain := func() *http.Request { return httptest.NewRequest("GET", "/", nil) }
	valid := root.sign(t, jane, nil)
	for _, tc := range []struct {
		name string
		r    *http.Request
		want string // name uid groups, or "error: text"
	}{
		{"nothing", plain(), "system:anonymous  system:unauthenticated"},
		{"basic", withHeader(plain(), "Authorization", "Basic YTpi"), "system:anonymous  system:unauthenticated"},
		{"empty bearer", withHeader(plain(), "Authorization", "Bearer "), "system:anonymous  system:unauthenticated"},
		{"bearer after two spaces", withHeader(plain(), "Authorization", "Bearer  secret"),
			"system:anonymous  system:unauthenticated"},
		{"token", withHeader(plain(), "Authorization", "Bearer secret"), "bob 42 a,b,system:authenticated"},
		{"token without groups", withHeader(plain(), "Authorization", "bearer plain"), "eve 7 system:authenticated"},
		{"token and more", withHeader(plain(), "Authorization", "BEARER secret more"),
			"bob 42 a,b,system:authenticated"},
		{"token of anonymous", withHeader(plain(), "Authorization", "Bearer anon"), "system:anonymous 1 "},
		{"token twice in the file", withHeader(plain(), "Authorization", "Bearer secret2"), "y 2 system:authenticated"},
		{"wrong token", withHeader(plain(), "Authorization", "Bearer wrong"), "error: invalid bearer token"},
		{"token of a browser", withProtocols("v1", "TOKEN:secret", "v2"), "bob 42 a,b,system:authenticated"},
		{"wrong token of a browser", withProtocols("v1", "TOKEN:wrong"), "error: invalid bearer token"},
		{"token alone", withProtocols("TOKEN:secret"), "error: missing additional subprotocol"},
		{"two tokens", withProtocols("v1", "TOKEN:secret", "TOKEN:secret"),
			"error: multiple base64.bearer.authorization tokens specified"},
		{"token in another encoding", withProtocols("v1", tokenProtocol+"c2VjcmV0+"),
			"error: invalid base64.bearer.authorization token encoding"},
		{"token that is no text", withProtocols("v1", "TOKEN:\xff"),
			"error: invalid base64.bearer.authorization token"},
		{"protocols without token", withProtocols("v1", tokenProtocol), "system:anonymous  system:unauthenticated"},
		{"token among protocols of another request",
			withHeader(plain(), protocolHeader, "v1, "+tokenProtocol+"c2VjcmV0"),
			"system:anonymous  system:unauthenticated"},
		{"certificate", withCertificates(valid), "jane  dev,ops,system:authenticated"},
		{"certificate before token", withHeader(withCertificates(valid), "Authorization", "Bearer secret"),
			"jane  dev,ops,system:authenticated"},
		{"certificate and wrong token", withHeader(withCertificates(valid), "Authorization", "Bearer wrong"),
			"jane  dev,ops,system:authenticated"},
		{"through an intermediate", withCertificates(middle.sign(t, jane, nil), middle),
			"jane  dev,ops,system:authenticated"},
		{"intermediate missing", withCertificates(middle.sign(t, jane, nil)), "error: signed by unknown authority"},
		{"stranger", withCertificates(stranger.sign(t, jane, nil)), "error: signed by unknown authority"},
		{"stranger with token",
			withHeader(withCertificates(stranger.sign(t, jane, nil)), "Authorization", "Bearer secret"),
			"bob 42 a,b,system:authenticated"},
		{"expired",
			withCertificates(root.sign(t, jane, func(c *x509.Certificate) { c.NotAfter = start.Add(time.Second) })),
			"error: expired"},
		{"for servers",
			withCertificates(root.sign(t, jane,
				func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })),
			"error: incompatible key usage"},
		{"without a name", withCertificates(root.sign(t, pkix.Name{Organization: []string{"dev"}}, nil)),
			"system:anonymous  system:unauthenticated"},
		{"with UID", withCertificates(root.sign(t, jane, uid("u1"))), "jane u1 dev,ops,system:authenticated"},
		{"with two UIDs", withCertificates(root.sign(t, jane, uid("u1", "u2"))), "error: more than one UID"},
		{"with an empty UID", withCertificates(root.sign(t, jane, uid(""))), "error: UID is empty"},
	} {
		for range 2 { // the second time from the cache
			header := tc.r.Header.Clone()
			u, err := a.Authenticate(tc.r)
			got := ""
			if err != nil {
				got = "error: " + err.Error()
				if want, isErr := strings.CutPrefix(tc.want, "error: "); isErr && strings.Contains(got, want) {
					got = tc.want
				}
			} else {
				got = u.GetName() + " " + u.GetUID() + " " + strings.Join(u.GetGroups(), ",")
				if u.GetName() == "bob" && strings.Contains(tc.r.Header.Get(protocolHeader), tokenProtocol) {
					t.Errorf("%s: the token is still there", tc.name)
				}
				if tc.r.Header.Get("Authorization") != "" {
					t.Errorf("%s: the Authorization header is still there", tc.name)
				}
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
			}
			tc.r.Header = header
		}
	}
	u, err := a.Authenticate(withCertificates(valid))
	must(t, err)
	if id := u.GetExtra()[user.CredentialIDKey]; len(id) != 1 || !strings.HasPrefix(id[0], "X509SHA256=") ||
		len(id[0]) != len("X509SHA256=")+64 {
		t.Errorf("credential id %q", id)
	}
}

func TestRememberedCertificateExpires(t *testing.T) {
	t.Parallel()
	root := newAuthority(t, nil, "root")
	now, roots := start.Add(time.Minute), pool(root)
	a := New(Config{ClientRoots: func() *x509.CertPool { return roots }, Now: func() time.Time { return now }})
	r := withCertificates(root.sign(t, pkix.Name{CommonName: "jane"}, nil))
	for _, step := range []struct {
		name   string
		change func()
		ok     bool
	}{
		{"valid", func() {}, true},
		{"last second", func() { now = start.Add(time.Hour) }, true},
		{"expired", func() { now = start.Add(time.Hour + time.Second) }, false},
		{"not yet valid", func() { now = start.Add(-time.Second) }, false},
		{"valid again", func() { now = start.Add(time.Minute) }, true},
		{"other authorities", func() { roots = pool(newAuthority(t, nil, "root")) }, false},
	} {
		step.change()
		if _, err := a.Authenticate(r); (err == nil) != step.ok {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}

func TestCertificateCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := &certificates{}
	roots := x509.NewCertPool()
	for i := range 3*certificateCacheSize + 5 {
		c.remember(roots, &x509.Certificate{Raw: big.NewInt(int64(i)).Bytes()}, verifiedUser{})
		if n := len(c.verified.Load().users); n > certificateCacheSize {
			t.Fatalf("%d entries", n)
		}
	}
}

func TestExtraSpaceWarns(t *testing.T) {
	t.Parallel()
	scope := &request.Scope{}
	r := withHeader(httptest.NewRequest("GET", "/", nil), "Authorization", "Bearer  x")
	_, err := New(Config{}).Authenticate(r.WithContext(request.NewContext(r.Context(), scope)))
	must(t, err)
	if got := scope.Warnings(); len(got) != 1 || !strings.Contains(got[0], "extra space before the bearer token") {
		t.Errorf("warnings %q", got)
	}
}

// TestNoToken checks that no Bearer is called for an empty token.
func TestNoToken(t *testing.T) {
	t.Parallel()
	if u, _, err := New(Config{Bearers: []Bearer{everyone{}}}).Token(t.Context(), "", nil); u != nil || err == nil {
		t.Errorf("%v, %v", u, err)
	}
}

// everyone accepts every token.
type everyone struct{}

func (everyone) Authenticate(context.Context, string, []string) (user.Info, []string, error) {
	return anonymous, nil, nil
}

func TestLoadTokensErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	for content, want := range map[string]string{
		"a,b\n":         "line 1 must have at least 3 columns (token, user name, user uid), found 2",
		"a,b,c\n\"x\n":  "parse error",
		"a,b,c\nx,y\n":  "line 2 must",
		"a,b,c,\"d,e\"": "",
	} {
		must(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := LoadTokens(file, slog.New(slog.DiscardHandler))
		if want == "" && err != nil || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file)) {
			t.Errorf("%q: %v", content, err)
		}
	}
	if _, err := LoadTokens(file+".none", slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), file+".none") {
		t.Errorf("missing file: %v", err)
	}
}

func TestImpersonation(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]string{"a"}, maxImpersonated)
	for _, tc := range []struct {
		name   string
		header http.Header
		want   *user.DefaultInfo
		err    string
	}{
		{"none", http.Header{"Accept": {"x"}}, nil, ""},
		{"user", http.Header{"Impersonate-User": {"jane"}}, &user.DefaultInfo{Name: "jane"}, ""},
		{"all",
			http.Header{
				"Impersonate-User": {"jane"}, "Impersonate-Uid": {"1"}, "Impersonate-Group": {"a", "b"},
				"Impersonate-Extra-Acme.com%2Fproject": {"p", "q"}, "Impersonate-Extra-%zz": {"r"},
			},
			&user.DefaultInfo{
				Name: "jane", UID: "1", Groups: []string{"a", "b"},
				Extra: map[string][]string{"acme.com/project": {"p", "q"}, "%zz": {"r"}},
			}, ""},
		{"empty user", http.Header{"Impersonate-User": {""}}, nil, ""},
		{"group only", http.Header{"Impersonate-Group": {"a"}}, &user.DefaultInfo{Groups: []string{"a"}}, ""},
		{"as many as are allowed",
			http.Header{
				"Impersonate-User": {"jane"}, "Impersonate-Group": many[1:], "Impersonate-Extra-X": {"a"},
			},
			&user.DefaultInfo{Name: "jane", Groups: many[1:], Extra: map[string][]string{"x": {"a"}}}, ""},
		{"too many groups", http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": append(many, "b")}, nil,
			"requested to act with 2001 groups and values of extra keys: at most 2000 are allowed"},
		{"too many extra", http.Header{"Impersonate-User": {"jane"}, "Impersonate-Extra-X": many,
			"Impersonate-Extra-Y": many}, nil, "requested to act with 4000 groups and values of extra keys"},
		{"uid only", http.Header{"Impersonate-Uid": {"a"}}, &user.DefaultInfo{UID: "a"}, ""},
		{"extra only", http.Header{"Impersonate-Extra-X": {"a"}},
			&user.DefaultInfo{Extra: map[string][]string{"x": {"a"}}}, ""},
	} {
		got, err := Impersonation(tc.header)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v", tc.name, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %+v, %v, want %+v", tc.name, got, err, tc.want)
		}
		for key := range tc.header {
			if got != nil && strings.HasPrefix(key, "Impersonate-") {
				t.Errorf("%s: header %s is still there", tc.name, key)
			}
		}
	}
}

func FuzzReadTokens(f *testing.F) {
	f.Add("a,b,c\n")
	f.Add("a,b,c,\"d,e\"\n")
	f.Fuzz(func(t *testing.T, content string) {
		tokens, err := readTokens(strings.NewReader(content), slog.New(slog.DiscardHandler))
		if err == nil && tokens.user("") != nil {
			t.Error("an empty token is accepted")
		}
	})
}

func BenchmarkAuthenticateCertificate(b *testing.B) {
	root := newAuthority(b, nil, "root")
	roots := pool(root)
	a := New(Config{
		ClientRoots: func() *x509.CertPool { return roots }, Now: func() time.Time { return start.Add(time.Minute) },
	})
	r := withCertificates(root.sign(b, pkix.Name{CommonName: "jane"}, nil))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Authenticate(r); err != nil {
			b.Fatal(err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
