package aggregation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/net/forward"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/reuse"
)

// discoveryTimeout bounds a discovery request, since clients request discovery of all servers one after another.
const discoveryTimeout = 5 * time.Second

// maxLists is the number of concurrent lists of a server over HTTP/1; further lists, and all other requests, use
// HTTP/2. With HTTP/2, a list of some MB spends half of its CPU time on frames of 16 KiB, each copied and signalled on
// both sides. The number is below the number of idle connections that are kept (egress.Transport).
const maxLists = 16

// delivery is a request on its way to another server.
type delivery struct {
	remote *remote
	route  route
	user   user.Info
	header http.Header // of the response to the client
	alone  bool        // on its own HTTP/1 connection
}

type deliveryKey struct{}

// delivered is a context with a delivery, in one allocation.
type delivered struct {
	context.Context
	delivery
}

func (d *delivered) Value(key any) any {
	if key == (deliveryKey{}) {
		return &d.delivery
	}
	return d.Context.Value(key)
}

func deliveryOf(r *http.Request) *delivery {
	d, _ := r.Context().Value(deliveryKey{}).(*delivery)
	return d
}

// handler returns the handler of requests for an APIService.
func (a *aggregator) handler(remote *remote) front.Handler {
	return func(w http.ResponseWriter, r *http.Request, info *request.Info, u user.Info) {
		// The work of the other server costs this one only memory.
		defer request.Wait(r.Context())()
		if scope := request.ScopeOf(r.Context()); scope != nil && scope.Visible != nil {
			codec.WriteError(w, r,
				apierrors.NewBadRequest("another server serves this resource and cannot filter it by visibility"))
			return
		}
		if s := a.await(r.Context(), remote); !s.available() {
			a.unavailable(w, r, u, remote, s)
			return
		}
		if err := remote.backend.broken; err != nil {
			codec.WriteError(w, r, apierrors.NewInternalError(err))
			return
		}
		to, err := a.route(r.Context(), remote)
		if err != nil {
			a.failed(w, r, u, remote, err)
			return
		}
		ctx := r.Context()
		if !info.IsResource {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, discoveryTimeout)
			defer cancel()
		}
		remote.backend.requests.Add(1)
		d := &delivered{Context: a.host.Egress.ForRequest(ctx), delivery: delivery{
			remote: remote, route: to, user: u, header: w.Header(), alone: r.Header.Get("Upgrade") != "",
		}}
		if info.Verb == "list" {
			d.alone = d.alone || remote.backend.lists.Add(1) <= maxLists
			defer remote.backend.lists.Add(-1)
		}
		r = r.WithContext(d)
		if wantsInitialEvents(r, info) {
			a.watchList(w, r, &d.delivery)
			return
		}
		forward.Lend(a.proxy, w, r)
		if info.Verb == "create" && info.Subresource == "" && a.onCreate != nil {
			a.onCreate(remote.path() + "/" + info.Resource)
		}
	}
}

// newProxy returns the proxy of requests that carry a delivery.
func (a *aggregator) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			d := deliveryOf(r.Out)
			forward.Rewrite(r, d.route.address(), d.user)
		},
		Transport:      carrier{a.certificates},
		BufferPool:     buffers{reuse.Bytes(32 << 10)},
		ModifyResponse: a.inspect,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			d := deliveryOf(r)
			a.failed(w, r, d.user, d.remote, err)
		},
		// It only logs disconnected clients and servers.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// carrier sends a request over the connections of its APIService.
type carrier struct{ certificates *webhook.Certificates }

// RoundTrip implements http.RoundTripper.
func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	d := deliveryOf(r)
	return forward.Send(r, &d.route, func(r *http.Request) (*http.Response, error) { return c.send(d, r) })
}

func (c carrier) send(d *delivery, r *http.Request) (*http.Response, error) {
	resp, err := d.remote.backend.For(d.alone).RoundTrip(r)
	if err != nil {
		c.certificates.Failed(r.Context(), r.URL.Hostname(), err)
		return nil, err
	}
	if resp.TLS != nil {
		c.certificates.Answered(r.Context(), r.URL.Hostname(), resp.TLS.PeerCertificates)
	}
	return resp, nil
}

// inspect checks a response before the client gets it.
func (a *aggregator) inspect(resp *http.Response) error {
	if a.settings.RejectRedirects && resp.StatusCode >= 300 && resp.StatusCode < 400 &&
		resp.Header.Get("Location") != "" {
		return errRedirect
	}
	var client http.Header
	if d := deliveryOf(resp.Request); d != nil {
		client = d.header
	}
	forward.TakeHeaders(resp, client)
	return whole(resp)
}

// maxWhole is the largest response that is read completely before the client gets any of it.
const maxWhole = 64 << 10

// whole reads a short response with a Content-Length. If the other server breaks off, as a killed one does, the client
// gets an error: after the first bytes, the proxy could only close the connection.
func whole(resp *http.Response) error {
	if n := resp.ContentLength; n <= 0 || n > maxWhole || resp.Request.Method == http.MethodHead {
		return nil
	}
	body := make([]byte, resp.ContentLength)
	_, err := io.ReadFull(resp.Body, body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return fmt.Errorf("the answer breaks off: %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

var errRedirect = errors.New("the backend attempted to redirect this request, which is not permitted")

// failed answers a request that did not reach the other server, or got no response.
func (a *aggregator) failed(w http.ResponseWriter, r *http.Request, u user.Info, remote *remote, err error) {
	if errors.Is(err, errRedirect) {
		codec.WriteError(w, r, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusBadGateway, Reason: metav1.StatusReasonUnknown,
			Message: foreign.Text(err.Error()),
		}})
		return
	}
	if parent := r.Context(); parent.Err() != nil && !errors.Is(parent.Err(), context.DeadlineExceeded) {
		return // the client is gone
	}
	a.queue.Add(remote.name)
	a.unavailable(w, r, u, remote, &state{reason: "the request has failed", message: foreign.Text(err.Error())})
}

// unavailable answers 503. Users with permission to see the APIService also get the reason.
func (a *aggregator) unavailable(w http.ResponseWriter, r *http.Request, u user.Info, remote *remote, s *state) {
	text := fmt.Sprintf("APIService %q is not available", remote.name)
	switch {
	case !a.maySee(r.Context(), u, remote.name):
	case s == nil:
		text += ": it has not been checked yet"
	default:
		text += ": " + s.reason + ": " + s.message
	}
	codec.WriteError(w, r, apierrors.NewServiceUnavailable(text))
}

func (a *aggregator) maySee(ctx context.Context, u user.Info, name string) bool {
	if a.host.Authorizer == nil {
		return false
	}
	decision, err := a.host.Authorizer.Authorize(ctx, u, &request.Info{
		Verb: "get", IsResource: true, APIPrefix: "apis", Group: Resource.Group, Version: "v1",
		Resource: Resource.Resource, Name: name,
		Path: "/apis/" + Resource.Group + "/v1/" + Resource.Resource + "/" + name,
	})
	return err == nil && decision.Allowed()
}

// buffers is the pool of copy buffers.
type buffers struct{ *reuse.Pool[*[]byte] }

// Get implements httputil.BufferPool.
func (b buffers) Get() []byte { p := *b.Pool.Get(); return p[:cap(p)] }

// Put implements httputil.BufferPool.
func (b buffers) Put(p []byte) { b.Pool.Put(&p) }
