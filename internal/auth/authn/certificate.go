package authn

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// certificateCacheSize bounds the cache of verified certificates. Only valid ones are cached, so an outsider cannot
// fill the cache; when it is full it starts over.
const certificateCacheSize = 1024

// certificates authenticates client certificates and caches verified ones: the signatures of a chain cost tens of
// microseconds, and a client sends the same certificate with each request of a connection.
type certificates struct {
	roots func() *x509.CertPool
	names func(verified *x509.Certificate) (user.Info, error) // nil without an error: it names no user

	mu       sync.Mutex // serializes writers; readers use verified
	verified atomic.Pointer[verifiedSet]
}

// verifiedSet holds the certificates verified with one pool of authorities. The map never changes; a larger one
// replaces it.
type verifiedSet struct {
	roots *x509.CertPool
	users map[string]verifiedUser // by the certificate's DER bytes
}

// verifiedUser is the user of a certificate, and the time during which its whole chain is valid.
type verifiedUser struct {
	user        user.Info
	from, until time.Time
}

// user returns the user of chain's first certificate, or nil if it names no user. now is the time of the check. chain
// is not empty.
func (c *certificates) user(chain []*x509.Certificate, now time.Time) (user.Info, error) {
	leaf, roots := chain[0], c.roots()
	if set := c.verified.Load(); set != nil && set.roots == roots {
		if known, ok := set.users[string(leaf.Raw)]; ok && !now.Before(known.from) && !now.After(known.until) {
			return known.user, nil
		}
	}
	return c.verify(chain, roots, now)
}

// verify is user for a chain that is not cached. It is a separate function because x509.VerifyOptions is large:
// otherwise the stack of every request's goroutine would have to grow.
//
//go:noinline
func (c *certificates) verify(chain []*x509.Certificate, roots *x509.CertPool, now time.Time) (user.Info, error) {
	leaf := chain[0]
	options := x509.VerifyOptions{
		Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(chain) > 1 {
		options.Intermediates = x509.NewCertPool()
		for _, intermediate := range chain[1:] {
			options.Intermediates.AddCert(intermediate)
		}
	}
	trusted, err := leaf.Verify(options)
	if err != nil {
		return nil, fmt.Errorf("client certificate %q: %w", leaf.Subject.String(), err)
	}
	u, err := c.names(leaf)
	if u == nil || err != nil {
		return nil, err
	}
	v := verifiedUser{user: u, from: leaf.NotBefore, until: leaf.NotAfter}
	for _, issuer := range trusted[0] {
		if issuer.NotBefore.After(v.from) {
			v.from = issuer.NotBefore
		}
		if issuer.NotAfter.Before(v.until) {
			v.until = issuer.NotAfter
		}
	}
	c.remember(roots, leaf, v)
	return u, nil
}

func (c *certificates) remember(roots *x509.CertPool, leaf *x509.Certificate, v verifiedUser) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := &verifiedSet{roots: roots}
	if old := c.verified.Load(); old != nil && old.roots == roots && len(old.users) < certificateCacheSize {
		next.users = maps.Clone(old.users)
	} else {
		next.users = map[string]verifiedUser{}
	}
	next.users[string(leaf.Raw)] = v
	c.verified.Store(next)
}

// uidOID is the object identifier of the user's UID in a certificate's subject (registered for Kubernetes).
var uidOID = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}

// certificateUser returns the user of a verified certificate, nil without a common name.
func certificateUser(cert *x509.Certificate) (user.Info, error) {
	name := cert.Subject.CommonName
	if name == "" {
		return nil, nil
	}
	uid := ""
	for _, part := range cert.Subject.Names {
		if !part.Type.Equal(uidOID) {
			continue
		}
		value, ok := part.Value.(string)
		switch {
		case !ok:
			return nil, fmt.Errorf("client certificate %q: UID is not a string", cert.Subject.String())
		case value == "":
			return nil, fmt.Errorf("client certificate %q: UID is empty", cert.Subject.String())
		case uid != "":
			return nil, errors.New("client certificate with more than one UID")
		}
		uid = value
	}
	digest := sha256.Sum256(cert.Raw)
	return &user.DefaultInfo{
		Name:   name,
		UID:    uid,
		Groups: authenticated(name, cert.Subject.Organization),
		Extra:  map[string][]string{user.CredentialIDKey: {"X509SHA256=" + hex.EncodeToString(digest[:])}},
	}, nil
}
