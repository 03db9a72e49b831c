package serviceaccount

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// LegacyIssuer is the issuer of tokens in secrets.
const LegacyIssuer = "kubernetes/serviceaccount"

// Named is an object that a token is about or bound to.
type Named struct {
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
}

// Bound is the claim "kubernetes.io" of a token from the TokenRequest API. The order of the fields is that of
// Kubernetes' tokens.
type Bound struct {
	// Attestations are statements about the account that a webhook can rely on, of tokens for webhooks.
	Attestations     map[string][]string `json:"attestations,omitempty"`
	MutatingWebhooks *Named              `json:"mutatingwebhookconfiguration,omitempty"`
	Namespace        string              `json:"namespace,omitempty"`
	// At most one of Pod, Secret and the configurations of webhooks is set. A Node is either bound itself, or the pod's
	// node.
	Node    *Named `json:"node,omitempty"`
	Pod     *Named `json:"pod,omitempty"`
	Secret  *Named `json:"secret,omitempty"`
	Account Named  `json:"serviceaccount"`

	ValidatingWebhooks *Named `json:"validatingwebhookconfiguration,omitempty"`
	// WarnAfter is the time at which a token with an extended lifetime should have been renewed; seconds, 0 for none.
	WarnAfter int64 `json:"warnafter,omitempty"`
}

// Request describes a token to issue.
type Request struct {
	Bound
	Audiences []string
	ID        string
	Now       time.Time
	Life      time.Duration
}

// audiences is the claim "aud": a list in our tokens, possibly a single string in others.
type audiences []string

// UnmarshalJSON accepts both forms.
func (a *audiences) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// claims holds the claims of both kinds of tokens.
type claims struct {
	Audience  audiences `json:"aud,omitempty"`
	Expires   float64   `json:"exp,omitempty"`
	Issued    float64   `json:"iat,omitempty"`
	Issuer    string    `json:"iss,omitempty"`
	ID        string    `json:"jti,omitempty"`
	Bound     *Bound    `json:"kubernetes.io,omitempty"`
	NotBefore float64   `json:"nbf,omitempty"`
	Subject   string    `json:"sub,omitempty"`

	Namespace   string `json:"kubernetes.io/serviceaccount/namespace,omitempty"`
	SecretName  string `json:"kubernetes.io/serviceaccount/secret.name,omitempty"`
	AccountName string `json:"kubernetes.io/serviceaccount/service-account.name,omitempty"`
	AccountUID  string `json:"kubernetes.io/serviceaccount/service-account.uid,omitempty"`
}

// The library calls these and is configured not to check them: checkBound does.
func (c *claims) GetExpirationTime() (*jwt.NumericDate, error) { return nil, nil }
func (c *claims) GetIssuedAt() (*jwt.NumericDate, error)       { return nil, nil }
func (c *claims) GetNotBefore() (*jwt.NumericDate, error)      { return nil, nil }
func (c *claims) GetIssuer() (string, error)                   { return c.Issuer, nil }
func (c *claims) GetSubject() (string, error)                  { return c.Subject, nil }
func (c *claims) GetAudience() (jwt.ClaimStrings, error)       { return jwt.ClaimStrings(c.Audience), nil }

// Issue returns a signed token.
func (t *Tokens) Issue(ctx context.Context, r Request) (string, error) {
	now := r.Now.Unix()
	return t.sign(ctx, &claims{
		Issuer: t.config.Issuers[0], Subject: username(r.Namespace, r.Account.Name),
		Audience: slices.Clone(r.Audiences),
		ID:       r.ID, Issued: float64(now), NotBefore: float64(now), Expires: float64(now) + r.Life.Seconds(),
		Bound: &r.Bound,
	})
}

// IssueLegacy returns the token of a secret: it has no audience and never expires, but ends with the secret.
func (t *Tokens) IssueLegacy(ctx context.Context, namespace string, account Named, secret string) (string, error) {
	return t.sign(ctx, &claims{
		Issuer: LegacyIssuer, Subject: username(namespace, account.Name),
		Namespace: namespace, SecretName: secret, AccountName: account.Name, AccountUID: account.UID,
	})
}

// MaxLife returns the maximum lifetime of tokens, 0 if there is none.
func (t *Tokens) MaxLife() time.Duration { return t.config.Keys.MaxLife() }

func (t *Tokens) sign(ctx context.Context, c *claims) (string, error) {
	if t.config.Keys.external != nil {
		return t.config.Keys.signExternally(ctx, c)
	}
	set := t.config.Keys.current.Load()
	token := jwt.NewWithClaims(jwt.GetSigningMethod(set.signing.Algorithm), c)
	token.Header = map[string]any{"alg": set.signing.Algorithm, "kid": set.signing.ID}
	return token.SignedString(set.signer)
}

func username(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}
