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

// FrontProxy says which proxies may name the sender of a request in headers, and in which: kube's flags
// --requestheader-*. Such a proxy has authenticated the client itself and shows a certificate of its own authority.
type FrontProxy struct {
	// Roots returns the authorities of the proxies' certificates.
	Roots func() *x509.CertPool
	// AllowedNames are the common names that the certificates may have; empty allows all.
	AllowedNames []string
	// UsernameHeaders and UIDHeaders are looked at in order: the first that is not empty counts. All values of all
	// GroupHeaders count. A header that begins with one of ExtraPrefixes has the values of the key that is its rest.
	// Case is ignored.
	UsernameHeaders, UIDHeaders, GroupHeaders, ExtraPrefixes []string
}

// proxies authenticates by what front proxies say.
type proxies struct {
	current      func() *FrontProxy // nil while there are none
	certificates *certificates      // knows no user: a certificate is a proxy's, or an error
}

// proxyUser stands for a certificate that is a proxy's.
var proxyUser = &user.DefaultInfo{}

func newProxies(c Config) *proxies {
	p := &proxies{current: c.Proxies}
	if p.current == nil {
		p.current = func() *FrontProxy { return c.Proxy }
	}
	p.certificates = &certificates{roots: p.roots, names: p.check}
	return p
}

// roots returns the authorities of the proxies, none while there are no proxies.
func (p *proxies) roots() *x509.CertPool {
	if now := p.current(); now != nil {
		return now.Roots()
	}
	return noRoots
}

// noRoots is not nil, which would stand for the authorities of the host.
var noRoots = x509.NewCertPool()

// check returns proxyUser for a verified certificate that may be a proxy's.
func (p *proxies) check(leaf *x509.Certificate) (user.Info, error) {
	now := p.current()
	if now == nil || len(now.AllowedNames) > 0 && !slices.Contains(now.AllowedNames, leaf.Subject.CommonName) {
		return nil, fmt.Errorf("x509: subject with cn=%s is not in the allowed list", leaf.Subject.CommonName)
	}
	return proxyUser, nil
}

// verify returns an error for a certificate that is not a proxy's.
func (p *proxies) verify(chain []*x509.Certificate, now time.Time) error {
	_, err := p.certificates.user(chain, now)
	return err
}

// user returns who h names, nil if they name no user. It does not look at who sends them.
func (p *proxies) user(h http.Header) *user.DefaultInfo {
	now := p.current()
	if now == nil {
		return nil
	}
	name := firstValue(h, now.UsernameHeaders)
	if name == "" {
		return nil
	}
	who := &user.DefaultInfo{
		Name: name, UID: firstValue(h, now.UIDHeaders), Groups: []string{}, Extra: map[string][]string{},
	}
	for _, header := range now.GroupHeaders {
		for _, group := range h[http.CanonicalHeaderKey(header)] {
			if group != "" {
				who.Groups = append(who.Groups, group)
			}
		}
	}
	for _, prefix := range now.ExtraPrefixes {
		for header, values := range h {
			if hasPrefixFold(header, prefix) {
				key := extraKey(header[len(prefix):])
				who.Extra[key] = append(who.Extra[key], values...)
			}
		}
	}
	who.Groups = authenticated(who.Name, who.Groups)
	return who
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
