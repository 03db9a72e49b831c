package authz

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"io"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/filters"
	upstream "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/bowsprit/bowsprit/internal/auth/authn"
)

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (a *authority) sign(t *testing.T, subject pkix.Name, change func(*x509.Certificate)) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: subject, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(template)
	}
	parent, signer := template, key
	if a == nil {
		template.IsCA, template.KeyUsage, template.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
	} else {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(cryptorand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

// certificates are the client certificates of requests: of proxies, clients and strangers, valid and invalid.
func certificates(t *testing.T, proxies, clients *authority) []*x509.Certificate {
	t.Helper()
	var none *authority
	var all []*x509.Certificate
	uid := func(values ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			for _, v := range values {
				c.Subject.ExtraNames = append(c.Subject.ExtraNames, pkix.AttributeTypeAndValue{
					Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: v,
				})
			}
		}
	}
	for _, by := range []*authority{proxies, clients, none.sign(t, pkix.Name{CommonName: "stranger"}, nil)} {
		for _, name := range []string{"front", "jane", "system:anonymous", ""} {
			subject := pkix.Name{CommonName: name, Organization: []string{"dev"}}
			all = append(all, by.sign(t, subject, nil).cert)
		}
		front := pkix.Name{CommonName: "front"}
		all = append(all, by.sign(t, front, func(c *x509.Certificate) { c.NotAfter = c.NotBefore }).cert,
			by.sign(t, front, func(c *x509.Certificate) {
				c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			}).cert,
			by.sign(t, pkix.Name{CommonName: "un", Organization: []string{user.AllUnauthenticated}}, nil).cert,
			by.sign(t, front, uid("7")).cert, by.sign(t, front, uid("7", "8")).cert)
	}
	return all
}

// TestAuthenticationMatchesKubernetes sends random certificates, headers and tokens through both chains.
func TestAuthenticationMatchesKubernetes(t *testing.T) {
	klog.LogToStderr(false) // it logs each refused request
	klog.SetOutput(io.Discard)
	t.Cleanup(func() { klog.LogToStderr(true) })
	cases := 20_000
	if n, err := strconv.Atoi(os.Getenv("AUTHENTICATION_CASES")); err == nil {
		cases = n
	}
	var none *authority
	proxies, clients := none.sign(t, pkix.Name{CommonName: "p"}, nil), none.sign(t, pkix.Name{CommonName: "c"}, nil)
	proxyRoots, clientRoots := x509.NewCertPool(), x509.NewCertPool()
	proxyRoots.AddCert(proxies.cert)
	clientRoots.AddCert(clients.cert)
	tokens := filepath.Join(t.TempDir(), "tokens")
	text := "secret,bob,42,\"a,b\"\nanon,system:anonymous,1\nun,x,1,system:unauthenticated\n"
	if err := os.WriteFile(tokens, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := authn.LoadTokens(tokens, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"front"}
	users, uids, groups, extras := []string{"X-Remote-User", "X-Old"}, []string{"X-Remote-Uid"},
		[]string{"X-Remote-Group", "x-team"}, []string{"x-remote-extra-"}
	mine := authn.New(authn.Config{
		Proxy: &authn.FrontProxy{
			Roots: func() *x509.CertPool { return proxyRoots }, AllowedNames: names, UsernameHeaders: users,
			UIDHeaders: uids, GroupHeaders: groups, ExtraPrefixes: extras,
		},
		ClientRoots: func() *x509.CertPool { return clientRoots }, Tokens: known, AnonymousPaths: []string{"/open"},
	})
	theirs := kubes(t, proxyRoots, clientRoots, tokens, authenticatorfactory.RequestHeaderConfig{
		UsernameHeaders: headerrequest.StaticStringSlice(users), UIDHeaders: headerrequest.StaticStringSlice(uids),
		GroupHeaders:        headerrequest.StaticStringSlice(groups),
		ExtraHeaderPrefixes: headerrequest.StaticStringSlice(extras),
		AllowedClientNames:  headerrequest.StaticStringSlice(names),
	})
	rng := rand.New(rand.NewPCG(7, 8))
	certs := certificates(t, proxies, clients)
	outcomes := map[string]int{}
	for range cases {
		r := randomRequest(rng, certs)
		again := r.Clone(r.Context())
		want, wantHeader := theirs(r)
		var got *user.DefaultInfo
		if u, err := mine.Authenticate(again); err == nil {
			if _, err := authn.Impersonation(again.Header); err != nil { // it removes the proxies' headers in any case
				t.Fatal(err)
			}
			p := plain(u)
			got = &p
		}
		if !reflect.DeepEqual(got, want) || got != nil && !reflect.DeepEqual(again.Header, wantHeader) {
			t.Fatalf("%s %v, certificate %v:\n got %+v %v\nwant %+v %v", r.URL, r.Header, r.TLS, got, again.Header, want,
				wantHeader)
		}
		outcome := "refused"
		if got != nil {
			outcome = got.Name
		}
		outcomes[outcome]++
	}
	for _, outcome := range []string{"refused", "alice", "front", "bob", "system:anonymous"} {
		if outcomes[outcome] < cases/200 {
			t.Errorf("only %d cases ended with %s: %v", outcomes[outcome], outcome, outcomes)
		}
	}
}

// kubes returns the result of kube-apiserver's chain for a request: the user, or nil for a 401, and the remaining
// headers.
func kubes(
	t *testing.T, proxies, clients *x509.CertPool, tokens string, headers authenticatorfactory.RequestHeaderConfig,
) func(*http.Request) (*user.DefaultInfo, http.Header) {
	t.Helper()
	verify := func(roots *x509.CertPool) x509request.VerifyOptionFunc {
		o := x509request.DefaultVerifyOptions()
		o.Roots = roots
		return func() (x509.VerifyOptions, bool) { return o, true }
	}
	static, err := tokenfile.NewCSV(tokens)
	if err != nil {
		t.Fatal(err)
	}
	var chain authenticator.Request = union.New(
		headerrequest.NewDynamicVerifyOptionsSecure(verify(proxies), headers.AllowedClientNames,
			headers.UsernameHeaders, headers.UIDHeaders, headers.GroupHeaders, headers.ExtraHeaderPrefixes),
		x509request.NewDynamic(verify(clients), x509request.CommonNameUserConversion),
		bearertoken.New(static), websocket.NewProtocolAuthenticator(static))
	chain = union.NewFailOnError(group.NewAuthenticatedGroupAdder(chain),
		anonymous.NewAuthenticator([]apiserver.AnonymousAuthCondition{{Path: "/open"}}))
	var expected *user.DefaultInfo
	var left http.Header
	filter := filters.WithAuthentication(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		u, _ := upstream.UserFrom(r.Context())
		p := plain(u)
		expected, left = &p, r.Header
	}), chain, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil, &headers)
	return func(r *http.Request) (*user.DefaultInfo, http.Header) {
		expected, left = nil, nil
		filter.ServeHTTP(httptest.NewRecorder(), r.Clone(r.Context()))
		return expected, left
	}
}

func randomRequest(rng *rand.Rand, certs []*x509.Certificate) *http.Request {
	pick := func(values ...string) string { return values[rng.IntN(len(values))] }
	r := httptest.NewRequest("GET", pick("/open", "/", "/api"), nil)
	r.Header = http.Header{"Accept": {"*/*"}}
	if rng.IntN(3) > 0 {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certs[rng.IntN(len(certs))]}}
	}
	for _, name := range []string{"X-Remote-User", "X-Old", "x-remote-user"} {
		if rng.IntN(3) == 0 {
			r.Header.Add(name, pick("alice", "alice", "", "system:anonymous"))
		}
	}
	for _, name := range []string{"X-Remote-Group", "X-Team"} {
		for range rng.IntN(3) {
			r.Header.Add(name, pick("a", "", "system:masters", "system:authenticated", "system:unauthenticated"))
		}
	}
	if rng.IntN(3) == 0 {
		r.Header.Add("X-Remote-Uid", pick("1", ""))
	}
	if rng.IntN(3) == 0 { // one key: with more, both go through them in the order of a map
		r.Header["X-Remote-Extra-"+pick("Key", "Acme.com%2Fk", "%Zz", "")] = []string{pick("v", ""), "w"}
	}
	switch rng.IntN(4) {
	case 0:
		r.Header.Set("Authorization", pick("Bearer ", "bearer  ", "Basic ", "Bearer", "")+
			pick("secret", "anon", "un", "wrong", "", "secret secret"))
	case 1:
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
		r.Header.Add("Sec-Websocket-Protocol", pick("v1", "v2", "")+pick(", ", "")+
			"base64url.bearer.authorization.k8s.io."+
			base64.RawURLEncoding.EncodeToString([]byte(pick("secret", "wrong", "anon", ""))))
	}
	return r
}
