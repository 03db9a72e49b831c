package bowsprit_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/issuer"
	"github.com/bowsprit/bowsprit/testserver"
)

// signed is a certificate with its key.
type signed struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// sign returns a certificate for clients; a nil authority makes another authority.
func (a *signed) sign(t *testing.T, subject pkix.Name) *signed {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: subject, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, key
	if a == nil {
		template.IsCA, template.KeyUsage, template.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
	} else {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return &signed{cert, key}
}

// file writes the certificate, PEM.
func (a *signed) file(t *testing.T) string {
	t.Helper()
	return inFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

func inFile(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, data, 0o600))
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// whoAmI returns the server's view of the client, "name uid groups", or the status code.
func whoAmI(t *testing.T, server *testserver.Server, by *signed, header http.Header) string {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(server.RESTConfig().CAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	if by != nil {
		// Send the certificate whatever the server requests: an attacker ignores its hints.
		own := &tls.Certificate{Certificate: [][]byte{by.cert.Raw}, PrivateKey: by.key}
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return own, nil
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST",
		server.URL()+"/apis/authentication.k8s.io/v1/selfsubjectreviews",
		strings.NewReader(`{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}`))
	must(t, err)
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := transport.RoundTrip(r)
	must(t, err)
	defer resp.Body.Close()
	var review authenticationv1.SelfSubjectReview
	if resp.StatusCode != http.StatusCreated {
		return resp.Status
	}
	must(t, json.NewDecoder(resp.Body).Decode(&review))
	u := review.Status.UserInfo
	return fmt.Sprintf("%s %s %s", u.Username, u.UID, strings.Join(u.Groups, ","))
}

// TestFrontProxy runs each case of a front proxy over real connections.
func TestFrontProxy(t *testing.T) {
	t.Parallel()
	var none *signed
	proxies, clients := none.sign(t, pkix.Name{CommonName: "proxies"}), none.sign(t, pkix.Name{CommonName: "clients"})
	server := testserver.Start(t, func(c *bowsprit.Config) {
		c.Authentication.ClientCAFile = clients.file(t)
		c.Authentication.RequestHeader = bowsprit.RequestHeaderConfig{
			ClientCAFile: proxies.file(t), AllowedNames: []string{"front"}, UsernameHeaders: []string{"X-Remote-User"},
			UIDHeaders: []string{"X-Remote-Uid"}, GroupHeaders: []string{"X-Remote-Group"},
			ExtraHeadersPrefix: []string{"X-Remote-Extra-"},
		}
	})
	named := func(a *signed, name string) *signed { return a.sign(t, pkix.Name{CommonName: name}) }
	alice := http.Header{"X-Remote-User": {"alice"}, "X-Remote-Group": {"dev"}, "X-Remote-Uid": {"7"}}
	master := http.Header{"X-Remote-User": {"alice"}, "X-Remote-Group": {"system:masters"}}
	as := func(h http.Header, user string) http.Header {
		h = h.Clone()
		h.Set("Impersonate-User", user)
		return h
	}
	for _, tc := range []struct {
		name   string
		by     *signed
		header http.Header
		want   string
	}{
		{"right authority and name", named(proxies, "front"), alice, "alice 7 dev,system:authenticated"},
		{"any user", named(proxies, "front"), master, "alice  system:masters,system:authenticated"},
		{"one who acts as another", named(proxies, "front"), as(master, "bob"), "bob  system:authenticated"},
		{"one who may not", named(proxies, "front"), as(alice, "bob"), "403 Forbidden"},
		{"wrong name", named(proxies, "back"), alice, "401 Unauthorized"},
		{"wrong authority", named(none.sign(t, pkix.Name{CommonName: "proxies"}), "front"), alice, "401 Unauthorized"},
		{"no certificate", nil, master, "403 Forbidden"}, // of the anonymous user
		{"a client's certificate", named(clients, "jane"), master, "jane  system:authenticated"},
		{"a client of the proxy's name", named(clients, "front"), master, "front  system:authenticated"},
		{"a proxy without headers", named(proxies, "front"), nil, "401 Unauthorized"},
	} {
		if got := whoAmI(t, server, tc.by, tc.header); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestOneAuthorityForAll checks that an authority of both proxies and clients requires allowed names, and causes a
// warning in any case.
func TestOneAuthorityForAll(t *testing.T) {
	t.Parallel()
	var none *signed
	all := none.sign(t, pkix.Name{CommonName: "all"})
	file := all.file(t)
	c := bowsprit.Config{Ephemeral: true, Authentication: bowsprit.AuthenticationConfig{
		ClientCAFile: file, RequestHeader: bowsprit.RequestHeaderConfig{ClientCAFile: file},
	}}
	server, err := bowsprit.New(c)
	must(t, err)
	err = server.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "--requestheader-client-ca-file and --client-ca-file contain "+
		"overlapping certificates; --requestheader-allowed-names must be specified") {
		t.Errorf("got %v", err)
	}
	allowed := testserver.Start(t, func(c *bowsprit.Config) {
		c.Authentication.ClientCAFile = file
		c.Authentication.RequestHeader = bowsprit.RequestHeaderConfig{
			ClientCAFile: file, AllowedNames: []string{"front"}, UsernameHeaders: []string{"X-Remote-User"},
		}
	})
	header := http.Header{"X-Remote-User": {"alice"}}
	for name, want := range map[string]string{
		"front": "alice  system:authenticated", "jane": "jane  system:authenticated",
	} {
		if got := whoAmI(t, allowed, all.sign(t, pkix.Name{CommonName: name}), header); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// bearer returns a client with only a token.
func bearer(t *testing.T, server *testserver.Server, token string) *kubernetes.Clientset {
	t.Helper()
	config := rest.AnonymousClientConfig(server.RESTConfig())
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

// tokenUser returns "name groups" of a token from a SelfSubjectReview, or the error.
func tokenUser(t *testing.T, server *testserver.Server, token string) string {
	t.Helper()
	review, err := bearer(t, server, token).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err.Error()
	}
	return review.Status.UserInfo.Username + " " + strings.Join(review.Status.UserInfo.Groups, ",")
}

// TestAuthenticationConfig checks an issuer in a file: all reviews accept its tokens, and only the anonymous requests
// in the file are allowed.
func TestAuthenticationConfig(t *testing.T) {
	t.Parallel()
	i := issuer.New(t)
	ca, err := json.Marshal(string(i.CA))
	must(t, err)
	file := inFile(t, fmt.Appendf(nil, `
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /version}]}
jwt:
- issuer: {url: %s, audiences: [kubernetes], certificateAuthority: %s}
  claimMappings:
    username: {expression: '"jwt:" + claims.sub'}
    groups: {expression: '["readers"]'}
`, i.URL, ca))
	server := testserver.Start(t, func(c *bowsprit.Config) { c.Authentication.ConfigFile = file })
	token := i.Sign(nil)
	const want = "jwt:jane readers,system:authenticated"
	// The issuer is looked for in the background.
	for got := ""; got != want && t.Context().Err() == nil; got = tokenUser(t, server, token) {
		if got != "" && got != "Unauthorized" {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	admin, err := kubernetes.NewForConfig(server.RESTConfig())
	must(t, err)
	review, err := admin.AuthenticationV1().TokenReviews().Create(t.Context(),
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	must(t, err)
	if got := review.Status; !got.Authenticated || got.User.Username != "jwt:jane" ||
		!slices.Contains(got.Audiences, "https://kubernetes.default.svc.cluster.local") {
		t.Errorf("got %+v", got)
	}
	review, err = admin.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: i.Sign(map[string]any{"aud": "x"})},
	}, metav1.CreateOptions{})
	must(t, err)
	if got := review.Status; got.Authenticated || !strings.HasPrefix(got.Error, "[invalid bearer token, oidc: verify token: ") {
		t.Errorf("got %+v", got)
	}
	for path, code := range map[string]int{"/version": 200, "/healthz": 401, "/livez": 401} {
		var got int
		bearer(t, server, "").RESTClient().Get().AbsPath(path).Do(t.Context()).StatusCode(&got)
		if got != code {
			t.Errorf("%s: %d, want %d", path, got, code)
		}
	}
	refused := bowsprit.Config{Ephemeral: true, Authentication: bowsprit.AuthenticationConfig{
		ConfigFile: file, Anonymous: new(bool),
	}}
	other, err := bowsprit.New(refused)
	must(t, err)
	if err := other.Run(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "--anonymous-auth flag cannot be set when anonymous field is configured") {
		t.Errorf("got %v", err)
	}
}

// TestAnonymousByFileWithAlwaysAllow checks that with AlwaysAllow, the server accepts the anonymous requests that the
// file allows.
func TestAnonymousByFileWithAlwaysAllow(t *testing.T) {
	t.Parallel()
	file := inFile(t, []byte(`
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /livez}]}
`))
	server := testserver.Start(t, func(c *bowsprit.Config) {
		c.Authentication.ConfigFile, c.Authorization.Modes = file, []string{"AlwaysAllow"}
	})
	for path, code := range map[string]int{"/livez": 200, "/healthz": 401, "/api": 401} {
		var got int
		bearer(t, server, "").RESTClient().Get().AbsPath(path).Do(t.Context()).StatusCode(&got)
		if got != code {
			t.Errorf("%s: %d, want %d", path, got, code)
		}
	}
}

// TestBootstrapToken checks that a bootstrap token is valid while its secret exists, and only if the flag is on.
func TestBootstrapToken(t *testing.T) {
	t.Parallel()
	const token = "abcdef.0123456789abcdef"
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef", Namespace: "kube-system"},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
			"auth-extra-groups": "system:bootstrappers:workers",
		},
	}
	for _, on := range []bool{true, false} {
		server := testserver.Start(t, func(c *bowsprit.Config) { c.Authentication.BootstrapTokens = on })
		admin, err := kubernetes.NewForConfig(server.RESTConfig())
		must(t, err)
		_, err = admin.CoreV1().Secrets("kube-system").Create(context.Background(), secret, metav1.CreateOptions{})
		must(t, err)
		want := "Unauthorized"
		if on {
			want = "system:bootstrap:abcdef system:bootstrappers,system:bootstrappers:workers,system:authenticated"
		}
		if got := tokenUser(t, server, token); got != want {
			t.Errorf("%v: got %q, want %q", on, got, want)
		}
		must(t, admin.CoreV1().Secrets("kube-system").Delete(context.Background(), secret.Name, metav1.DeleteOptions{}))
		if got := tokenUser(t, server, token); got != "Unauthorized" {
			t.Errorf("%v: after the deletion: got %q", on, got)
		}
	}
}
