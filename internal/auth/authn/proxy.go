package authn

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// FrontProxy configures the proxies that may name the user of a request, and the headers: Kubernetes' flags
// --requestheader-*. Such a proxy authenticates the client and shows a certificate of a separate authority.
type FrontProxy struct {
	// Roots returns the authorities of the proxies' certificates.
	Roots func() *x509.CertPool
	// AllowedNames are the allowed common names of the certificates; empty allows all.
	AllowedNames []string
	// The first non-empty header of UsernameHeaders and of UIDHeaders counts. All values of all GroupHeaders count. A
	// header that begins with one of ExtraPrefixes has the values of the key in the rest of its name. Case is ignored.
	UsernameHeaders, UIDHeaders, GroupHeaders, ExtraPrefixes []string
}

// proxies authenticates by the headers of front proxies.
type proxies struct {
	current      func() *FrontProxy // returns nil while there are none
	certificates *certificates      // names no user: a certificate belongs to a proxy, or is an error
}

// proxyUser represents a proxy's certificate.
var proxyUser = &user.DefaultInfo{}

func newProxies(c Config) *proxies {
	p := &proxies{current: c.Proxies}
	if p.current == nil {
		p.current = func() *FrontProxy { return c.Proxy }
	}
	p.certificates = &certificates{roots: p.roots, names: p.check}
	return p
}

// roots returns the authorities of the proxies, an empty pool without proxies.
func (p *proxies) roots() *x509.CertPool {
	if now := p.current(); now != nil {
		return now.Roots()
	}
	return noRoots
}

// noRoots is not nil, which would mean the authorities of the host.
var noRoots = x509.NewCertPool()

// check returns proxyUser for a verified certificate with an allowed name.
func (p *proxies) check(leaf *x509.Certificate) (user.Info, error) {
	now := p.current()
	if now == nil || len(now.AllowedNames) > 0 && !slices.Contains(now.AllowedNames, leaf.Subject.CommonName) {
		return nil, fmt.Errorf("x509: subject with cn=%s is not in the allowed list", leaf.Subject.CommonName)
	}
	return proxyUser, nil
}

// verify returns an error for a certificate that does not belong to a proxy.
func (p *proxies) verify(chain []*x509.Certificate, now time.Time) error {
	_, err := p.certificates.user(chain, now)
	return err
}

// user returns the user in h, nil if there is none. It does not check the sender.
func (p *proxies) user(h http.Header) *user.DefaultInfo {
	now := p.current()
	if now == nil {
		return nil
	}
	name := firstValue(h, now.UsernameHeaders)
	if name == "" {
		return nil
	}
	u := &user.DefaultInfo{
		Name: name, UID: firstValue(h, now.UIDHeaders), Groups: []string{}, Extra: map[string][]string{},
	}
	for _, header := range now.GroupHeaders {
		for _, group := range h[http.CanonicalHeaderKey(header)] {
			if group != "" {
				u.Groups = append(u.Groups, group)
			}
		}
	}
	for _, prefix := range now.ExtraPrefixes {
		for header, values := range h {
			if hasPrefixFold(header, prefix) {
				key := extraKey(header[len(prefix):])
				u.Extra[key] = append(u.Extra[key], values...)
			}
		}
	}
	u.Groups = authenticated(u.Name, u.Groups)
	return u
}

// clear removes all headers that could name a user, whether they were believed or not.
func (p *proxies) clear(h http.Header) {
	now := p.current()
	if now == nil {
		return
	}
	for _, headers := range [][]string{now.UsernameHeaders, now.UIDHeaders, now.GroupHeaders} {
		for _, header := range headers {
			h.Del(header)
		}
	}
	for header := range h {
		if slices.ContainsFunc(now.ExtraPrefixes, func(prefix string) bool { return hasPrefixFold(header, prefix) }) {
			delete(h, header)
		}
	}
}

func firstValue(h http.Header, headers []string) string {
	for _, header := range headers {
		if value := h.Get(header); value != "" {
			return value
		}
	}
	return ""
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
