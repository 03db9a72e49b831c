package serviceaccount

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
)

// The paths of the documents for verifying our tokens.
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeysPath          = "/openid/v1/jwks"
)

// Configuration returns the OpenID provider configuration (OpenID Connect Discovery 1.0), JSON. keysURI is where the
// keys are.
func (t *Tokens) Configuration(keysURI string) []byte {
	var algorithms []string
	for _, key := range t.config.Keys.Public() {
		if !slices.Contains(algorithms, key.Algorithm) {
			algorithms = append(algorithms, key.Algorithm)
		}
	}
	slices.Sort(algorithms)
	return mustMarshal(struct {
		Issuer     string   `json:"issuer"`
		KeysURI    string   `json:"jwks_uri"`
		Responses  []string `json:"response_types_supported"`
		Subjects   []string `json:"subject_types_supported"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}{t.Issuer(), keysURI, []string{"id_token"}, []string{"public"}, algorithms})
}

// webKey is a JSON Web Key (RFC 7517, 7518).
type webKey struct {
	Use       string `json:"use"`
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Curve     string `json:"crv,omitempty"`
	Algorithm string `json:"alg"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
	N         string `json:"n,omitempty"`
	E         string `json:"e,omitempty"`
}

// KeySet returns the keys that prove tokens, a JSON Web Key Set.
func (t *Tokens) KeySet() []byte {
	set := struct {
		Keys []webKey `json:"keys"`
	}{[]webKey{}}
	encode := base64.RawURLEncoding.EncodeToString
	for _, key := range t.config.Keys.Public() {
		web := webKey{Use: "sig", ID: key.ID, Algorithm: key.Algorithm}
		switch public := key.Public.(type) {
		case *rsa.PublicKey:
			web.Type, web.N, web.E = "RSA", encode(public.N.Bytes()), encode(big.NewInt(int64(public.E)).Bytes())
		case *ecdsa.PublicKey:
			web.Type, web.Curve = "EC", public.Curve.Params().Name
			point, err := public.Bytes() // 4, X, Y: uncompressed
			if err != nil {
				panic(err) // newKey accepts only known curves
			}
			half := (len(point) - 1) / 2
			web.X, web.Y = encode(point[1:1+half]), encode(point[1+half:])
		}
		set.Keys = append(set.Keys, web)
	}
	return mustMarshal(set)
}

func mustMarshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings only
	}
	return data
}
