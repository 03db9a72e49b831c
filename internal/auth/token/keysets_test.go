package token

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/net/foreign/publickey"
)

type fetched string

func (f fetched) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(f)))}, nil
}

// TestLargeKeySets passes key sets on, except sets with a key whose checks take minutes.
func TestLargeKeySets(t *testing.T) {
	t.Parallel()
	largest := strings.Repeat("A", (publickey.MaxBits+5)/6)
	for modulus, refused := range map[string]bool{
		"AQAB": false, largest: false, largest + "AA": true, strings.Repeat("A", 900_000): true,
	} {
		set := fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256"},{"kty":"RSA","e":"AQAB","n":%q}]}`, modulus)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://issuer.example.com/keys", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := keySets{fetched(set)}.RoundTrip(r)
		if refused {
			if err == nil || !strings.Contains(err.Error(), "key 1 of https://issuer.example.com/keys: the RSA key has") {
				t.Errorf("a modulus of %d bytes: %v", len(modulus), err)
			}
			continue
		}
		if err != nil {
			t.Errorf("a modulus of %d bytes: %v", len(modulus), err)
			continue
		}
		if text, err := io.ReadAll(resp.Body); err != nil || string(text) != set {
			t.Errorf("the set has changed: %v", err)
		}
	}
}
