package pki

import (
	"bytes"
	"time"
)

// announcement is a supplied serving certificate that clients may already trust, but that is not in use yet.
type announcement struct {
	next *supplied // nil if there is none
	due  time.Time // when it comes into use
}

// announceLocked takes the serving certificate that the files hold and returns the certificate to use now: the current
// one during an announcement. changed reports that the announcement, and so ServerCA, has changed.
func (p *PKI) announceLocked(read *supplied) (use *supplied, changed bool) {
	current, a, now := p.mu.supplied, &p.mu.announced, p.config.Now()
	switch {
	case p.config.Announce <= 0 || bytes.Equal(read.certPEM, current.certPEM):
		changed = a.next != nil
		*a = announcement{}
		return read, changed
	case a.next == nil || !read.same(a.next):
		p.config.Log.Info("serving certificate announced", "file", read.certFile, "usedIn", p.config.Announce)
		*a = announcement{read, now.Add(p.config.Announce)}
		return current, true
	case now.Before(a.due):
		return current, false
	}
	*a = announcement{}
	return read, true
}

// announcing reports whether a certificate is announced.
func (p *PKI) announcing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.announced.next != nil
}
