package attack

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/testserver"
)

// TestCertificates presents certificates that name users without proof. The response is 401, and never the response for
// the user in the certificate.
func TestCertificates(t *testing.T) {
	t.Parallel()
	server := victim(t)
	config := server.RESTConfig()
	block, _ := pem.Decode(config.CAData)
	real, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := x509.ParseCertificate(admin.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	subject := pkix.Name{CommonName: "system:admin", Organization: []string{"system:masters"}}
	leaf := func() *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: subject, NotBefore: time.Now().Add(-time.Hour),
			NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
	}
	authority := func(name pkix.Name) *x509.Certificate {
		c := leaf()
		c.Subject, c.IsCA, c.BasicConstraintsValid, c.KeyUsage = name, true, true, x509.KeyUsageCertSign
		c.SubjectKeyId = issued.AuthorityKeyId
		return c
	}
	sign := func(c, by *x509.Certificate, signer crypto.Signer) []byte {
		der, err := x509.CreateCertificate(rand.Reader, c, by, key.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	foreign, namesake, byAdmin := authority(pkix.Name{CommonName: "foreign"}), authority(issued.Issuer),
		authority(issued.Subject)
	adminKey, _ := admin.PrivateKey.(crypto.Signer)
	for name, chain := range map[string][][]byte{
		"signed by itself":                        {sign(leaf(), leaf(), key)},
		"of a foreign authority":                  {sign(leaf(), foreign, key)},
		"of an authority with the right name":     {sign(leaf(), namesake, key)},
		"with the right authority behind it":      {sign(leaf(), namesake, key), block.Bytes},
		"signed with a user's certificate":        {sign(leaf(), byAdmin, adminKey), admin.Certificate[0]},
		"another's certificate without its key":   {admin.Certificate[0]},
		"the authority's own, as a client's":      {block.Bytes},
		"the authority of servers, as a client's": {real.Raw, admin.Certificate[0]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tlsConfig(t, config, "http/1.1")
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &tls.Certificate{Certificate: chain, PrivateKey: key}, nil
			}
			one := http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
			answer, err := one.Get(server.URL() + "/api/v1/namespaces")
			if err != nil {
				return // refused in the handshake
			}
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusUnauthorized {
				t.Errorf("status %d", answer.StatusCode)
			}
		})
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestSignatures forges tokens of service accounts: signed with a public key, with another key under the right key's
// name, without a key, and with the valid signature of another token.
func TestSignatures(t *testing.T) {
	t.Parallel()
	server := victim(t)
	good := token(t, server)
	parts := strings.Split(good, ".")
	if len(parts) != 3 {
		t.Fatalf("no token: %q", good)
	}
	var header map[string]any
	decode(t, parts[0], &header)
	var claims map[string]any
	decode(t, parts[1], &claims)
	claims["sub"] = "system:serviceaccount:kube-system:namespace-controller"
	public := body(t, server, "/openid/v1/jwks")
	segment := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	with := func(changes ...any) string {
		h := map[string]any{}
		for k, v := range header {
			h[k] = v
		}
		for i := 0; i+1 < len(changes); i += 2 {
			h[changes[i].(string)] = changes[i+1]
		}
		return segment(h) + "." + segment(claims)
	}
	keyed := func(text string, key []byte) string {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(text))
		return text + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	}
	own := newKey(t)
	signed := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		r, s, err := ecdsa.Sign(rand.Reader, own, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		raw := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		return text + "." + base64.RawURLEncoding.EncodeToString(raw)
	}
	jwk := map[string]any{"kty": "EC", "crv": "P-256", "alg": "ES256",
		"x": base64.RawURLEncoding.EncodeToString(own.X.FillBytes(make([]byte, 32))),
		"y": base64.RawURLEncoding.EncodeToString(own.Y.FillBytes(make([]byte, 32)))}
	for name, forged := range map[string]string{
		"other claims, good signature": parts[0] + "." + segment(claims) + "." + parts[2],
		"no algorithm":                 with("alg", "none") + ".",
		"No algorithm, in capitals":    with("alg", "NONE") + ".",
		"no algorithm, old signature":  with("alg", "none") + "." + parts[2],
		"an empty key":                 keyed(with("alg", "HS256"), nil),
		"the public keys as a secret":  keyed(with("alg", "HS256"), []byte(public)),
		"another key":                  signed(with("alg", "ES256")),
		"another key in the header":    signed(with("alg", "ES256", "jwk", jwk)),
		"another key by URL":           signed(with("alg", "ES256", "jku", "https://evil.example.com/jwks")),
		"a key name that is a path":    signed(with("alg", "ES256", "kid", "../../../../dev/null")),
		"a signature of zeros": with("alg", "ES256") + "." +
			base64.RawURLEncoding.EncodeToString(make([]byte, 64)),
		"no signature":      with(),
		"one part":          parts[1],
		"four parts":        good + "." + parts[2],
		"a token in itself": base64.RawURLEncoding.EncodeToString([]byte(good)),
		"a long token":      strings.Repeat(good, 100),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code := as(t, server, forged).send(t.Context(), http.MethodGet, "/version", "", "")
			if code != http.StatusUnauthorized {
				t.Errorf("status %d", code)
			}
		})
	}
	if code := as(t, server, good).send(t.Context(), http.MethodGet, "/version", "", ""); code != http.StatusOK {
		t.Errorf("the good token: status %d", code)
	}
}

// token makes a token of the service account default/default.
func token(t *testing.T, server *testserver.Server) string {
	t.Helper()
	c := as(t, server, "")
	c.send(t.Context(), http.MethodPost, "/api/v1/namespaces/default/serviceaccounts", "application/json",
		`{"metadata":{"name":"robot"}}`)
	answer, err := c.Post(server.URL()+"/api/v1/namespaces/default/serviceaccounts/robot/token", "application/json",
		strings.NewReader(`{"spec":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var request struct{ Status struct{ Token string } }
	if err := json.NewDecoder(answer.Body).Decode(&request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// body returns the administrator's response at a path.
func body(t *testing.T, server *testserver.Server, path string) string {
	t.Helper()
	answer, err := as(t, server, "").Get(server.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func decode(t *testing.T, segment string, into any) {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(segment)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}
