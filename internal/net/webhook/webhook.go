// Package webhook calls webhooks: all POSTs of JSON over HTTPS to addresses that users have configured, for conversion
// or for admission.
//
// It stands beside the request's path, below convert and admit. A Target is a URL or a service, with the authorities to
// trust. Client.Call sends a body and returns the bytes of the response, which its caller interprets. Resolver finds
// the address of a service in the view.
//
// Connections are kept per authority, server name, address and caller, so that certificates are never mixed up and each
// address of a service gets its share of calls although HTTP/2 uses one connection. A Client is safe for concurrent use
// and starts no goroutine beyond those of its connections.
package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/request"
)

// defaultTimeout bounds a call to a target without a timeout.
const defaultTimeout = 30 * time.Second

// Target is the address of a webhook and its trusted authorities. Either URL or Service is set.
type Target struct {
	URL     string
	Service *Service
	// CABundle holds the authorities, PEM, that may have signed the webhook's certificate; empty means the system's.
	CABundle []byte
	// Credentials authenticate the server to the webhook; nil means none.
	Credentials *Credentials
	// Timeout of the whole call, 30 seconds if zero. The webhook reads it in the query, as Kubernetes sends it.
	Timeout time.Duration
}

// Service refers to a Service object. Its certificate must be valid for <Name>.<Namespace>.svc.
type Service struct {
	Namespace, Name string
	Path            string // "" or beginning with a slash
	Port            int32  // 0 means 443
}

// Options configure a Client.
type Options struct {
	// Resolve returns the address, "host:port", of a port of a service. Required for targets that name services.
	Resolve func(ctx context.Context, namespace, name string, port int32) (hostport string, err error)
	// Certificates counts webhooks with certificates that clients no longer accept. Optional.
	Certificates *Certificates
	// Egress opens connections to webhooks; nil dials directly.
	Egress *egress.Egress
	// Log receives warnings about webhooks; nil drops them.
	Log *slog.Logger
}

// Client calls webhooks.
type Client struct {
	options   Options
	endpoints endpoints
}

// New returns a client.
func New(o Options) *Client {
	if o.Egress == nil {
		o.Egress = &egress.Egress{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{options: o}
}

// Close ends idle connections. Calls that run go on.
func (c *Client) Close() { c.endpoints.close() }

// Call posts body, JSON, to the target and returns the body of a successful response, which is never empty.
//
// The error texts equal Kubernetes' clients': `Post "https://…": …` for transport errors, the webhook's own text if it
// answers with a Status or with text. A response may be at most a few times as long as the body, plus 5 MiB. Call
// retries up to ten times within the timeout if the webhook requests that by Retry-After.
func (c *Client) Call(ctx context.Context, t Target, body []byte) (answer []byte, err error) {
	where, err := t.locate()
	if err != nil {
		return nil, err
	}
	limit := t.Timeout
	if limit == 0 {
		limit = defaultTimeout
	}
	where.RawQuery = url.Values{"timeout": {limit.String()}}.Encode()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ctx = c.options.Egress.ForRequest(ctx)
	defer request.Wait(ctx)()
	for attempt := 0; ; attempt++ {
		answer, wait, err := c.post(ctx, t, where, body)
		if wait < 0 || attempt == maxRetries {
			return answer, err
		}
		if !sleep(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// maxRetries is the number of retries for a webhook that answers with Retry-After.
const maxRetries = 10

// post makes one attempt. wait is the pause that the webhook requests before a retry, negative for no retry.
func (c *Client) post(ctx context.Context, t Target, where *url.URL, body []byte) (answer []byte, wait time.Duration,
	err error) {
	u := t.Credentials.to(where)
	e, err := c.endpoint(ctx, t, u)
	if err != nil {
		return nil, -1, &url.Error{Op: "Post", URL: where.String(), Err: err}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, where.String(), bytes.NewReader(body))
	if err != nil {
		return nil, -1, err
	}
	r.Header = http.Header{
		"Accept":       {"application/json, */*"},
		"Content-Type": {"application/json"},
		"User-Agent":   {userAgent},
	}
	u.sign(r)
	ctx, span := request.StartSpan(ctx, "HTTP POST", trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(attribute.String("http.request.method", http.MethodPost),
			attribute.String("url.full", where.String()), attribute.String("server.address", where.Hostname()))
	}
	request.Propagator.Inject(ctx, propagation.HeaderCarrier(r.Header))
	resp, err := e.client.Do(r)
	if err != nil {
		c.options.Certificates.Failed(ctx, where.Hostname(), err)
		return nil, -1, foreign.Error(err)
	}
	defer resp.Body.Close()
	if span.IsRecording() {
		span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	}
	if resp.TLS != nil {
		c.options.Certificates.Answered(ctx, where.Hostname(), resp.TLS.PeerCertificates)
	}
	return e.read(ctx, resp, maxAnswer(len(body)))
}

// userAgent is the User-Agent of kube-apiserver for webhooks of either kind.
const userAgent = "kube-apiserver-admission"

// locate returns the URL of a target, with a clean path as in Kubernetes' clients.
func (t Target) locate() (*url.URL, error) {
	if s := t.Service; s != nil {
		return &url.URL{
			Scheme: "https", Host: net.JoinHostPort(s.serverName(), strconv.Itoa(int(s.port()))),
			Path: path.Join("/", s.Path),
		}, nil
	}
	if t.URL == "" {
		return nil, errors.New("webhook configuration must have either service or URL")
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		//lint:ignore ST1005 kube's text
		return nil, fmt.Errorf("Unparsable URL: %v", err)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path.Join("/", u.Path)}, nil
}

func (s *Service) serverName() string { return s.Name + "." + s.Namespace + ".svc" }

func (s *Service) port() int32 {
	if s.Port == 0 {
		return 443
	}
	return s.Port
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
