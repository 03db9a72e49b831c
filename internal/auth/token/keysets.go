package token

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/bowsprit/bowsprit/internal/net/foreign/publickey"
)

// keySets is a transport that refuses key sets with an RSA key above publickey.MaxBits. The library checks a token's
// signature with any key, even a signature of another length, and any client may send forged tokens.
type keySets struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (k keySets) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := k.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	document, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(document))
	var set struct {
		Keys []struct {
			Modulus string `json:"n"`
		} `json:"keys"`
	}
	if json.Unmarshal(document, &set) != nil {
		return resp, nil // a discovery document, or an error for the library to report
	}
	for i, key := range set.Keys {
		if err := publickey.CheckText(key.Modulus); err != nil {
			return nil, fmt.Errorf("key %d of %s: %w", i, r.URL.Redacted(), err)
		}
	}
	return resp, nil
}
