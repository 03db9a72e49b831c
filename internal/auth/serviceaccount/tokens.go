// Package serviceaccount issues and verifies the tokens of service accounts.
//
// It serves package authn, which calls Tokens for a bearer token. Package review requests new tokens, package control
// tokens in secrets, and front serves the documents for verifying them elsewhere (Configuration, KeySet).
//
// Keys sign and verify; they come from the data directory or from files. Tokens issues JSON Web Tokens (RFC 7519) and
// checks them: signature, times, audience, and that the object a token is bound to still exists. A verified signature
// is cached; the other checks run each time.
//
// Rules: pkg/serviceaccount of Kubernetes 1.37. Keys and Tokens are safe for concurrent use.
package serviceaccount

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// DefaultIssuer is the issuer of tokens if none is configured: the name of the service that every cluster has.
const DefaultIssuer = "https://kubernetes.default.svc.cluster.local"

// Config configures Tokens.
type Config struct {
	Keys *Keys
	View *watchcache.View
	// Issuers lists the accepted issuers; the first is this server's. Empty means DefaultIssuer.
	Issuers []string
	// Audiences lists the names of this server in tokens; empty means the issuers.
	Audiences []string
	// Used records that the token of a secret was used on a day, "2006-01-02", UTC. It is called once a day, provided
	// that it updates the secret's label. nil records nothing.
	Used func(ctx context.Context, secret *watchcache.Entry, day string)
	Now  func() time.Time // nil means time.Now
	// ValidatingWebhooks and MutatingWebhooks are the prefixes of the configurations of webhooks that tokens may be
	// bound to; empty refuses such tokens.
	ValidatingWebhooks, MutatingWebhooks string
}

// Tokens issues and checks tokens.
type Tokens struct {
	config Config

	mu     sync.Mutex
	proven map[[sha256.Size]byte]provenToken
}

// provenToken holds the claims of a token with a verified signature.
type provenToken struct {
	keys   *keySet // the keys that verified it
	claims *claims
}

// provenLimit bounds the cache of tokens, which holds only valid ones. At the limit it starts over.
const provenLimit = 1024

// New returns Tokens.
func New(c Config) *Tokens {
	if len(c.Issuers) == 0 {
		c.Issuers = []string{DefaultIssuer}
	}
	if len(c.Audiences) == 0 {
		c.Audiences = c.Issuers
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Tokens{config: c, proven: map[[sha256.Size]byte]provenToken{}}
}

// Issuer returns the issuer of the tokens.
func (t *Tokens) Issuer() string { return t.config.Issuers[0] }

// Issuers returns the accepted issuers. Read only.
func (t *Tokens) Issuers() []string { return t.config.Issuers }

// Audiences returns the names of this server in tokens. Read only.
func (t *Tokens) Audiences() []string { return t.config.Audiences }

// Authenticate returns the user of a token, and the wanted audiences for which it is valid. No wanted audiences means
// this server. It returns nil without an error if the token is not one of ours.
func (t *Tokens) Authenticate(ctx context.Context, token string, wanted []string) (user.Info, []string, error) {
	issuer, ok := issuerOf(token)
	if !ok || issuer != LegacyIssuer && !slices.Contains(t.config.Issuers, issuer) {
		return nil, nil, nil
	}
	c, err := t.prove(ctx, token)
	if err != nil {
		return nil, nil, err
	}
	is := []string(c.Audience)
	if len(is) == 0 {
		is = t.config.Audiences // tokens of secrets are only for this server
	}
	if len(wanted) == 0 {
		wanted = t.config.Audiences
	}
	var good []string
	for _, audience := range wanted { // in the caller's order, as in Kubernetes
		if slices.Contains(is, audience) {
			good = append(good, audience)
		}
	}
	if len(good) == 0 {
		return nil, nil, fmt.Errorf("token audiences %q is invalid for the target audiences %q", is, wanted)
	}
	// Deleting the object that a token is bound to must end the token.
	if err := t.config.View.FreshOwn(ctx); err != nil {
		return nil, nil, err
	}
	var u user.Info
	switch {
	case issuer == LegacyIssuer:
		u, err = t.checkLegacy(ctx, c, token)
	case c.Bound == nil:
		err = errors.New("service account token has no claim kubernetes.io")
	default:
		u, err = t.checkBound(ctx, c)
	}
	if err != nil {
		return nil, nil, err
	}
	return u, good, nil
}

// issuerOf returns the issuer in an unverified token; ok is false if it is not a token.
func issuerOf(token string) (string, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", false
	}
	var c struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(payload, &c) != nil {
		return "", false
	}
	return c.Issuer, true
}

// prove checks the signature.
func (t *Tokens) prove(ctx context.Context, token string) (*claims, error) {
	keys, digest := t.config.Keys.current.Load(), sha256.Sum256([]byte(token))
	t.mu.Lock()
	known, ok := t.proven[digest]
	t.mu.Unlock()
	if ok && known.keys == keys {
		return known.claims, nil
	}
	if t.config.Keys.external != nil {
		keys = t.config.Keys.lookFor(ctx, keyIDOf(token), externalUnknown)
	}
	var problem error
	tried := false
	for _, key := range keys.all {
		c := &claims{}
		parser := jwt.NewParser(jwt.WithValidMethods([]string{key.Algorithm}), jwt.WithoutClaimsValidation())
		_, err := parser.ParseWithClaims(token, c, func(parsed *jwt.Token) (any, error) {
			if kid, named := parsed.Header["kid"].(string); named && kid != "" && kid != key.ID {
				return nil, errOtherKey
			}
			return key.Public, nil
		})
		if errors.Is(err, errOtherKey) {
			continue
		}
		tried = true
		if err != nil && !errors.Is(err, jwt.ErrTokenMalformed) {
			err = errSignature
		}
		if err != nil {
			problem = err
			continue
		}
		t.remember(digest, provenToken{keys, c})
		return c, nil
	}
	if !tried {
		return nil, errors.New("invalid signature, no keys found")
	}
	return nil, problem
}

// keyIDOf returns the key ID in a token, "" if it cannot be read.
func keyIDOf(token string) string {
	parsed, _, err := jwt.NewParser().ParseUnverified(token, &claims{})
	if err != nil {
		return ""
	}
	id, _ := parsed.Header["kid"].(string)
	return id
}

var (
	errOtherKey = errors.New("signed with another key")
	// errSignature has the text of Kubernetes' library for any invalid signature: TokenReviews show it.
	errSignature = errors.New("go-jose/go-jose: error in cryptographic primitive")
)

func (t *Tokens) remember(digest [sha256.Size]byte, p provenToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.proven) >= provenLimit {
		clear(t.proven)
	}
	t.proven[digest] = p
}

// leeway is the tolerated difference between clocks, and how long an object counts after its deletion began.
const leeway = time.Minute

func (t *Tokens) checkBound(ctx context.Context, c *claims) (user.Info, error) {
	now := t.config.Now()
	at := func(seconds float64) time.Time { return time.Unix(int64(seconds), 0) }
	switch {
	case c.NotBefore != 0 && now.Add(leeway).Before(at(c.NotBefore)):
		return nil, errors.New("service account token is not valid yet")
	case c.Expires != 0 && now.Add(-leeway).After(at(c.Expires)):
		return nil, errors.New("service account token has expired")
	case c.Issued != 0 && now.Add(leeway).Before(at(c.Issued)):
		return nil, errors.New("service account token is issued in the future")
	}
	b := c.Bound
	account, err := t.get(ctx, "serviceaccounts", b.Namespace, b.Account.Name)
	switch {
	case err != nil:
		return nil, err
	case account == nil:
		return nil, fmt.Errorf("serviceaccounts %q not found", b.Account.Name)
	case account.UID != b.Account.UID:
		return nil, fmt.Errorf("service account UID (%s) does not match claim (%s)", account.UID, b.Account.UID)
	case t.deleted(account):
		return nil, fmt.Errorf("service account %s/%s has been deleted", b.Namespace, b.Account.Name)
	}
	info := serviceaccount.ServiceAccountInfo{Name: b.Account.Name, Namespace: b.Namespace, UID: b.Account.UID}
	if b.Secret != nil {
		if err := t.holds(ctx, "secrets", b.Namespace, *b.Secret,
			"secret UID (%s) does not match service account secret ref claim (%s)"); err != nil {
			return nil, err
		}
	}
	if b.Pod != nil {
		if err := t.holds(ctx, "pods", b.Namespace, *b.Pod,
			"pod UID (%s) does not match service account pod ref claim (%s)"); err != nil {
			return nil, err
		}
		info.PodName, info.PodUID = b.Pod.Name, b.Pod.UID
	}
	if b.Node != nil {
		if b.Pod == nil { // otherwise it is only the pod's node
			if err := t.holds(ctx, "minions", "", *b.Node,
				"node UID (%s) does not match service account node ref claim (%s)"); err != nil {
				return nil, err
			}
		}
		info.NodeName, info.NodeUID = b.Node.Name, b.Node.UID
	}
	if err := t.checkWebhooks(ctx, b, &info); err != nil {
		return nil, err
	}
	if c.ID != "" {
		info.CredentialID = "JTI=" + c.ID
	}
	return info.UserInfo(), nil
}

// holds checks that the object that a token is bound to exists. mismatch is the error for another object of the same
// name.
func (t *Tokens) holds(ctx context.Context, prefix, namespace string, to Named, mismatch string) error {
	e, err := t.get(ctx, prefix, namespace, to.Name)
	switch {
	case err != nil:
		return err
	case e == nil:
		return errInvalidated
	case e.UID != to.UID:
		return fmt.Errorf(mismatch, e.UID, to.UID)
	case t.deleted(e):
		return errInvalidated
	}
	return nil
}

var errInvalidated = errors.New("service account token has been invalidated")

// deleted reports whether an object has been on its way out for longer than the leeway.
func (t *Tokens) deleted(e *watchcache.Entry) bool {
	if !e.Deleting {
		return false
	}
	text, _ := e.Field("metadata.deletionTimestamp")
	since, err := time.Parse(time.RFC3339, text)
	return err != nil || since.Before(t.config.Now().Add(-leeway))
}

// get returns an object. If it is missing, another replica may just have created it.
func (t *Tokens) get(ctx context.Context, prefix, namespace, name string) (*watchcache.Entry, error) {
	objects := t.config.View.Collection(prefix)
	if e := objects.Snapshot().Get(namespace, name); e != nil {
		return e, nil
	}
	if _, err := t.config.View.Fresh(ctx); err != nil {
		return nil, err
	}
	return objects.Snapshot().Get(namespace, name), nil
}
