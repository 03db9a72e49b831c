package token

import (
	"context"
	"net/http"
	"time"
)

// fetchPause is the time between two fetches of one issuer's documents. Anyone can invent a token with an unknown key,
// and each makes the library fetch the keys.
const fetchPause = time.Second

// paced is a transport that allows one fetch of an issuer at a time, and the next fetch of the same document fetchPause
// later. A fetch waits for its turn, so a token with a new key is not refused because of a recent fetch.
type paced struct {
	next http.RoundTripper
	turn chan struct{} // capacity 1; the holder uses the fields below
	last string        // the document fetched last
	free time.Time     // when it may be fetched again
}

func newPaced(next http.RoundTripper) *paced { return &paced{next: next, turn: make(chan struct{}, 1)} }

// RoundTrip implements http.RoundTripper.
func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-p.turn }()
	if r.Response != nil { // a redirect belongs to the previous fetch
		return p.next.RoundTrip(r)
	}
	if wait := time.Until(p.free); wait > 0 && p.last == r.URL.String() {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	resp, err := p.next.RoundTrip(r)
	p.last, p.free = r.URL.String(), time.Now().Add(fetchPause)
	return resp, err
}
