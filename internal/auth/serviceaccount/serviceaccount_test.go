package serviceaccount

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func keyPEM(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func newECDSA(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t *testing.T, name string, parts ...[]byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	for _, part := range parts {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(part)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	return file
}

var aRequest = Request{
	Bound:     Bound{Namespace: "shop", Account: Named{Name: "robot", UID: "1"}},
	Audiences: []string{"a"}, ID: "2", Now: time.Unix(1e9, 0), Life: time.Hour,
}

// TestKeysOfFiles signs with each kind of key and verifies with its public half, as another process would.
func TestKeysOfFiles(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaPublic, err := x509.MarshalPKIXPublicKey(rsaKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	for algorithm, file := range map[string]string{
		"RS256": write(t, "rsa.key", keyPEM(t, rsaKey)),
		"ES256": write(t, "p256.key", keyPEM(t, newECDSA(t, elliptic.P256()))),
		"ES384": write(t, "p384.key", keyPEM(t, newECDSA(t, elliptic.P384()))),
		"ES512": write(t, "p521.key", keyPEM(t, newECDSA(t, elliptic.P521()))),
	} {
		t.Run(algorithm, func(t *testing.T) {
			keys, err := OpenKeys(KeyConfig{SigningFile: file})
			if err != nil {
				t.Fatal(err)
			}
			tokens := New(Config{Keys: keys})
			token, err := tokens.Issue(t.Context(), aRequest)
			if err != nil {
				t.Fatal(err)
			}
			c, err := New(Config{Keys: keys}).prove(t.Context(), token)
			if err != nil || c.Subject != "system:serviceaccount:shop:robot" || c.Bound.Account.UID != "1" {
				t.Fatalf("%+v, %v", c, err)
			}
			parsed, _, err := jwt.NewParser().ParseUnverified(token, jwt.MapClaims{})
			if err != nil || len(parsed.Header) != 2 || parsed.Header["alg"] != algorithm ||
				parsed.Header["kid"] != keys.Public()[0].ID {
				t.Errorf("header %v, %v", parsed.Header, err)
			}
			if !strings.Contains(string(tokens.KeySet()), keys.Public()[0].ID) {
				t.Errorf("key set: %s", tokens.KeySet())
			}
		})
	}
	public := write(t, "rsa.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: rsaPublic}))
	keys, err := OpenKeys(KeyConfig{
		SigningFile: write(t, "ec.key", keyPEM(t, newECDSA(t, elliptic.P256()))), KeyFiles: []string{public},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := keys.Public(); len(got) != 1 || got[0].Algorithm != "RS256" {
		t.Errorf("keys %v; what signs is not believed unless it is named", got)
	}
}

// TestRotation replaces the server's own key: tokens of the old key are valid until it is removed.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	keys, err := OpenKeys(KeyConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, OwnKeyFile)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key's file: %v, %v", info, err)
	}
	tokens := New(Config{Keys: keys})
	old, err := tokens.Issue(t.Context(), aRequest)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenKeys(KeyConfig{Dir: dir})
	if err != nil || again.Public()[0].ID != keys.Public()[0].ID {
		t.Fatalf("a restart has other keys: %v", err)
	}
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fresh := keyPEM(t, newECDSA(t, elliptic.P256()))
	set := func(content []byte) error {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return keys.Refresh()
	}
	if err := set(append(append([]byte{}, fresh...), was...)); err != nil {
		t.Fatal(err)
	}
	next, err := tokens.Issue(t.Context(), aRequest)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{"old": old, "new": next} {
		if _, err := tokens.prove(t.Context(), token); err != nil {
			t.Errorf("the %s token: %v", name, err)
		}
	}
	if err := set([]byte("nonsense")); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a broken file: %v", err)
	}
	if _, err := tokens.prove(t.Context(), old); err != nil {
		t.Errorf("after a broken file: %v", err)
	}
	if err := set(fresh); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.prove(t.Context(), old); err == nil || err.Error() != "invalid signature, no keys found" {
		t.Errorf("a token of a key that is gone: %v", err)
	}
	if _, err := tokens.prove(t.Context(), next); err != nil {
		t.Error(err)
	}
}

// TestForgeries are tokens that look right.
func TestForgeries(t *testing.T) {
	keys, err := OpenKeys(KeyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	tokens := New(Config{Keys: keys})
	token, err := tokens.Issue(t.Context(), aRequest)
	if err != nil {
		t.Fatal(err)
	}
	c := &claims{Issuer: tokens.Issuer(), Subject: "system:serviceaccount:kube-system:admin"}
	none := jwt.NewWithClaims(jwt.SigningMethodNone, c)
	unsigned, err := none.SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	// The public key, taken for a shared secret.
	public, err := x509.MarshalPKIXPublicKey(keys.Public()[0].Public)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(public)
	if err != nil {
		t.Fatal(err)
	}
	other, err := jwt.NewWithClaims(jwt.SigningMethodES256, c).SignedString(newECDSA(t, elliptic.P256()))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	swapped := strings.Split(other, ".")
	for name, forged := range map[string]string{
		"no signature": unsigned, "shared secret": shared, "another key": other,
		"other claims": parts[0] + "." + swapped[1] + "." + parts[2], "cut": parts[0] + "." + parts[1] + ".",
	} {
		if _, err := tokens.prove(t.Context(), forged); !errors.Is(err, errSignature) {
			t.Errorf("%s: is believed, or refused for another reason: %v", name, err)
		}
	}
	for _, stranger := range []string{"", "a", "a.b.c", "..", other[:len(other)/2]} {
		if u, _, err := tokens.Authenticate(t.Context(), stranger, nil); u != nil || err != nil {
			t.Errorf("%q is none of ours: %v, %v", stranger, u, err)
		}
	}
}

func TestConfiguration(t *testing.T) {
	keys, err := OpenKeys(KeyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	got := string(New(Config{Keys: keys, Issuers: []string{"https://me"}}).Configuration("https://me/openid/v1/jwks"))
	want := `{"issuer":"https://me","jwks_uri":"https://me/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}`
	if got != want {
		t.Errorf("got %s", got)
	}
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(New(Config{Keys: keys}).KeySet(), &set); err != nil || len(set.Keys) != 1 ||
		len(set.Keys[0]["x"]) != 43 || set.Keys[0]["crv"] != "P-256" {
		t.Errorf("key set %v, %v", set, err)
	}
}

// FuzzIssuer parses unverified input.
func FuzzIssuer(f *testing.F) {
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJhIn0.c2ln")
	f.Fuzz(func(t *testing.T, token string) { issuerOf(token) })
}

// TestProvenTokensAreBounded checks that the cache of proven tokens starts over at its limit.
func TestProvenTokensAreBounded(t *testing.T) {
	t.Parallel()
	tokens := &Tokens{proven: map[[sha256.Size]byte]provenToken{}}
	for i := range 3 * provenLimit {
		tokens.remember(sha256.Sum256(fmt.Append(nil, i)), provenToken{})
		if len(tokens.proven) > provenLimit {
			t.Fatalf("%d tokens, want at most %d", len(tokens.proven), provenLimit)
		}
	}
}
