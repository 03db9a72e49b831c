package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
)

// Sign returns the signature of a text by the token: a JWS with HMAC SHA-256 and detached content (RFC 7515, appendix
// F), as joining nodes expect it.
func (t BootstrapToken) Sign(content string) string {
	head, _ := json.Marshal(struct { // strings cannot fail
		Algorithm string `json:"alg"`
		ID        string `json:"kid"`
	}{"HS256", t.ID})
	encode := base64.RawURLEncoding.EncodeToString
	mac := hmac.New(sha256.New, []byte(t.Secret))
	mac.Write([]byte(encode(head) + "." + encode([]byte(content))))
	return encode(head) + ".." + encode(mac.Sum(nil))
}
