package forward_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/net/forward"
)

// list is a route with the addresses after the first.
type list []string

func (l *list) More() bool { return len(*l) > 0 }

func (l *list) Next() string {
	next := (*l)[0]
	*l = (*l)[1:]
	return next
}

// body records whether it has been closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

// TestSend sends a request to servers of which some are unreachable. The sender closes the body, as transports do.
func TestSend(t *testing.T) {
	unreached, broken := forward.Unreached(errors.New("refused")), errors.New("broken")
	for _, test := range []struct {
		name     string
		errs     map[string]error // by address; nil answers
		next     []string
		gone     bool // the client, at the first attempt
		requests []string
		fails    error
		closed   bool // the body of the client
	}{
		{name: "reached", requests: []string{"a:1"}, closed: true},
		{name: "reached, with others", next: []string{"b:1"}, requests: []string{"a:1"}},
		{name: "the next one", errs: map[string]error{"a:1": unreached}, next: []string{"b:1", "c:1"},
			requests: []string{"a:1", "b:1"}},
		{name: "none", errs: map[string]error{"a:1": unreached, "b:1": unreached}, next: []string{"b:1"},
			requests: []string{"a:1", "b:1"}, fails: unreached},
		{name: "something was sent", errs: map[string]error{"a:1": broken}, next: []string{"b:1"},
			requests: []string{"a:1"}, fails: broken},
		{name: "the client is gone", errs: map[string]error{"a:1": unreached}, next: []string{"b:1"}, gone: true,
			requests: []string{"a:1"}, fails: unreached},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			sent := &body{Reader: strings.NewReader("something")}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://a:1/path?query=1", sent)
			if err != nil {
				t.Fatal(err)
			}
			var requests []string
			route := list(test.next)
			resp, err := forward.Send(r, &route, func(r *http.Request) (*http.Response, error) {
				requests = append(requests, r.URL.Host)
				if test.gone {
					cancel()
				}
				if r.Host != r.URL.Host || r.URL.RequestURI() != "/path?query=1" {
					t.Errorf("%s is asked for %s", r.Host, r.URL)
				}
				r.Body.Close()
				if err := test.errs[r.URL.Host]; err != nil {
					return nil, err
				}
				return &http.Response{Body: http.NoBody}, nil
			})
			if err == nil {
				resp.Body.Close()
			}
			if !errors.Is(err, test.fails) || !slices.Equal(requests, test.requests) || sent.closed != test.closed {
				t.Errorf("asked %v, error %v, body closed: %t", requests, err, sent.closed)
			}
		})
	}
}

// TestTakeHeaders checks that headers of both sides occur once.
func TestTakeHeaders(t *testing.T) {
	client := http.Header{"Audit-Id": {"here"}, "Cache-Control": {"no-cache, private"}}
	resp := &http.Response{Header: http.Header{"Audit-Id": {"there"}}}
	forward.TakeHeaders(resp, client)
	if len(resp.Header) != 0 || client.Get("Audit-Id") != "here" || client.Get("Cache-Control") == "" {
		t.Errorf("an answer that says nothing of caches: %v, %v", resp.Header, client)
	}
	resp.Header.Set("Cache-Control", "public")
	forward.TakeHeaders(resp, client)
	if resp.Header.Get("Cache-Control") != "public" || client.Get("Cache-Control") != "" {
		t.Errorf("an answer that does: %v, %v", resp.Header, client)
	}
	resp.Header.Set("Audit-Id", "there")
	forward.TakeHeaders(resp, nil) // without a client
	if resp.Header.Get("Audit-Id") != "" {
		t.Errorf("an answer to this server itself: %v", resp.Header)
	}
}

// TestCleanHeaders enumerates the headers of a response: the forwarding server keeps its own headers, and an API sets
// no headers for a browser's page.
func TestCleanHeaders(t *testing.T) {
	for name, want := range map[string]struct{ api, page bool }{
		"Content-Type": {true, true}, "Content-Encoding": {true, true}, "Cache-Control": {true, true},
		"Etag": {true, true}, "Last-Modified": {true, true}, "Retry-After": {true, true}, "Warning": {true, true},
		"Vary": {true, true}, "Location": {true, true}, "X-Content-Type-Options": {true, true}, "Expires": {true, true},
		"Content-Security-Policy": {true, true}, "X-Frame-Options": {true, true}, "Upgrade": {true, true},
		"X-Varied-Accept": {true, true}, "X-Stream-Protocol-Version": {true, true}, "Date": {true, true},
		"Set-Cookie": {false, true}, "Set-Cookie2": {false, true}, "Www-Authenticate": {false, true},
		"Refresh": {false, true}, "Server-Timing": {false, true}, "Link": {false, true},
		"Audit-Id": {}, "X-Kubernetes-Pf-Flowschema-Uid": {}, "X-Kubernetes-Pf-Prioritylevel-Uid": {},
		"X-Kubernetes-Anything": {}, "Access-Control-Allow-Origin": {}, "Access-Control-Allow-Credentials": {},
		"Access-Control-Expose-Headers": {}, "Access-Control-Max-Age": {}, "Access-Control-Allow-Private-Network": {},
		"Cross-Origin-Resource-Policy": {}, "Cross-Origin-Opener-Policy": {}, "Timing-Allow-Origin": {},
		"Strict-Transport-Security": {}, "Alt-Svc": {}, "Public-Key-Pins": {}, "Expect-Ct": {}, "Clear-Site-Data": {},
		"Service-Worker-Allowed": {}, "Origin-Agent-Cluster": {}, "Nel": {}, "Report-To": {}, "Reporting-Endpoints": {},
		"Proxy-Authenticate": {},
	} {
		if http.CanonicalHeaderKey(name) != name {
			t.Fatalf("%s is not canonical", name)
		}
		api, page := http.Header{name: {"a", "b"}}, http.Header{name: {"a", "b"}}
		resp := &http.Response{Header: api}
		forward.TakeHeaders(resp, http.Header{})
		forward.CleanHeaders(page)
		if (len(api) > 0) != want.api || (len(page) > 0) != want.page {
			t.Errorf("%s: kept of an API %v, of a page %v", name, len(api) > 0, len(page) > 0)
		}
	}
}
