// Package issuer is an OpenID Connect issuer for tests: its documents behind TLS, and arbitrary tokens.
package issuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Issuer signs tokens with one key, by ES256. It is safe for concurrent use.
type Issuer struct {
	// URL is the name of the issuer, and CA the authority of its certificate, PEM.
	URL string
	CA  []byte
	Key *ecdsa.PrivateKey

	server *httptest.Server
	broken atomic.Bool
}

// New starts an issuer, which ends with the test.
func New(t testing.TB) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{Key: key}
	i.server = httptest.NewTLSServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.server.Close)
	i.URL = i.server.URL
	i.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw})
	return i
}

// Break makes the issuer answer 500, or ends that.
func (i *Issuer) Break(broken bool) { i.broken.Store(broken) }

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	if i.broken.Load() {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/auth",
			"token_endpoint": i.URL + "/token", "id_token_signing_alg_values_supported": []string{"ES256"},
		})
	case "/keys":
		point, err := i.Key.PublicKey.Bytes()
		if err != nil {
			panic(err)
		}
		encode := base64.RawURLEncoding.EncodeToString
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{
			"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "1",
			"x": encode(point[1:33]), "y": encode(point[33:]),
		}}})
	default:
		http.NotFound(w, r)
	}
}

// Sign returns a token for the audience "kubernetes" that is valid for an hour, with additional or replaced claims.
func (i *Issuer) Sign(claims map[string]any) string {
	return Sign(jwt.SigningMethodES256, i.Key, i.Claims(claims))
}

// Claims returns the claims of a valid token, with additional or replaced claims.
func (i *Issuer) Claims(claims map[string]any) jwt.MapClaims {
	now := time.Now()
	all := jwt.MapClaims{
		"iss": i.URL, "aud": "kubernetes", "sub": "jane", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	for name, value := range claims {
		all[name] = value
	}
	return all
}

// Sign returns a token with an arbitrary signature.
func Sign(method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = "1"
	text, err := token.SignedString(key)
	if err != nil {
		panic(err)
	}
	return text
}
