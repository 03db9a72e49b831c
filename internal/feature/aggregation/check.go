package aggregation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/transport"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// check checks whether the other server is available, and returns the resources that it lists. Reasons and messages
// equal the ones of kube-aggregator's remote available controller.
func (a *aggregator) check(ctx context.Context, r *remote) (s *state, body []byte) {
	failed := func(reason, format string, args ...any) *state {
		return &state{status: apiregistrationv1.ConditionFalse, reason: reason, message: fmt.Sprintf(format, args...)}
	}
	where := r.spec.Service
	e := a.host.View.Collection(ref.Services.Prefix).Snapshot().Get(where.Namespace, where.Name)
	if e == nil {
		return failed("ServiceNotFound", "service/%s in %q is not present", where.Name, where.Namespace), nil
	}
	service := &corev1.Service{}
	if err := json.Unmarshal(e.JSON(), service); err != nil {
		s := failed("ServiceAccessError", "service/%s in %q cannot be checked due to: %v", where.Name, where.Namespace, err)
		s.status = apiregistrationv1.ConditionUnknown
		return s, nil
	}
	if service.Spec.Type == corev1.ServiceTypeClusterIP {
		i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == *where.Port })
		if i < 0 {
			return failed("ServicePortError", "service/%s in %q is not listening on port %d", where.Name,
				where.Namespace, *where.Port), nil
		}
		port := service.Spec.Ports[i].Name
		switch found, ready := a.endpoints(where, port); {
		case !found:
			return failed("EndpointsNotFound", "cannot find endpointslices for service/%s in %q", where.Name,
				where.Namespace), nil
		case !ready:
			return failed("MissingEndpoints", "endpointslices for service/%s in %q have no addresses with port name %q",
				where.Name, where.Namespace, port), nil
		}
	}
	body, err := a.probe(ctx, r)
	if err != nil {
		s := failed("FailedDiscoveryCheck", "%s", err)
		s.answered = errors.As(err, new(*statusError))
		return s, nil
	}
	return &state{status: apiregistrationv1.ConditionTrue, reason: "Passed", message: "all checks passed"}, body
}

// endpoints reports whether a service has EndpointSlices or Endpoints, and whether one of them has a ready address with
// the port.
func (a *aggregator) endpoints(where *apiregistrationv1.ServiceReference, port string) (found, ready bool) {
	all := a.host.View.Collection(ref.EndpointSlices.Prefix).Snapshot()
	all.Scan(where.Namespace, "", func(e *watchcache.Entry) bool {
		slice := &discoveryv1.EndpointSlice{}
		if e.Labels[sliceService] != where.Name || json.Unmarshal(e.JSON(), slice) != nil {
			return true
		}
		found = true
		ready = slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool {
			return e.Conditions.Ready == nil || *e.Conditions.Ready
		}) && slices.ContainsFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool {
			return p.Name != nil && *p.Name == port && p.Port != nil
		})
		return !ready
	})
	if found {
		return found, ready
	}
	e := a.host.View.Collection(ref.Endpoints.Prefix).Snapshot().Get(where.Namespace, where.Name)
	//lint:ignore SA1019 manually written endpoints are often Endpoints
	old := &corev1.Endpoints{}
	if e == nil || json.Unmarshal(e.JSON(), old) != nil {
		return false, false
	}
	for _, subset := range old.Subsets {
		if len(subset.Addresses) > 0 && slices.ContainsFunc(subset.Ports,
			func(p corev1.EndpointPort) bool { return p.Name == port }) {
			ready = true
		}
	}
	return true, ready
}

const (
	// probeTimeout bounds one request of a check. A check makes up to probes requests, each to a random address: the
	// first alone, and if it fails the others concurrently. One success is enough.
	probeTimeout = 5 * time.Second
	probes       = 5
	// maxListed bounds the other server's list of resources.
	maxListed = 4 << 20
)

// probe lists the resources of the other server.
func (a *aggregator) probe(ctx context.Context, r *remote) ([]byte, error) {
	if r.backend.broken != nil {
		return nil, r.backend.broken
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	body, err := a.probeOnce(ctx, r)
	if err == nil || ctx.Err() != nil {
		return body, err
	}
	type result struct {
		body []byte
		err  error
	}
	results := make(chan result, probes-1) // room for all, so that no sender blocks
	for range probes - 1 {
		go func() {
			body, err := a.probeOnce(ctx, r)
			results <- result{body, err}
		}()
	}
	var last result
	for range probes - 1 {
		if one := <-results; last.body == nil {
			last = one
			if one.err == nil {
				cancel() // aborts the others
			}
		}
	}
	return last.body, last.err
}

func (a *aggregator) probeOnce(ctx context.Context, r *remote) ([]byte, error) {
	address, err := a.address(ctx, r)
	if err != nil {
		return nil, err
	}
	at := url.URL{Scheme: "https", Host: address, Path: r.path()}
	answer, err := r.backend.fetch(ctx, at, "", "", maxListed)
	if err != nil {
		// Do not reuse a connection that does not answer.
		r.backend.CloseIdle()
		return nil, fmt.Errorf("failing or missing response from %v: %w", at.String(), &url.Error{
			Op: "Get", URL: at.String(), Err: foreign.Error(err),
		})
	}
	if answer.code < 200 || answer.code >= 300 {
		return nil, &statusError{at: at.String(), code: answer.code}
	}
	if answer.body == nil {
		return []byte{}, nil
	}
	return answer.body, nil
}

// answer is a response of the other server. body is nil if it is too long.
type answer struct {
	code              int
	etag, contentType string
	body              []byte
}

// fetch gets a path of the other server, as a user with permission to read everything. accept may be "": Kubernetes'
// checks send none, and a server may support only one form of resource lists.
func (b *backend) fetch(ctx context.Context, at url.URL, accept, etag string, limit int64) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	r.Header.Set("User-Agent", "kube-apiserver-aggregator")
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
	}
	transport.SetAuthProxyHeaders(r, "system:kube-aggregator", "", []string{"system:masters"}, nil)
	resp, err := b.Shared().RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := &answer{
		code: resp.StatusCode, etag: resp.Header.Get("Etag"), contentType: resp.Header.Get("Content-Type"),
	}
	if resp.StatusCode != http.StatusOK {
		return out, nil
	}
	out.body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(out.body)) > limit {
		out.body = nil
	}
	return out, nil
}

// statusError is the error of a check that got a response with an unexpected status.
type statusError struct {
	at   string
	code int
}

// Error implements error, in kube-aggregator's words.
func (e *statusError) Error() string {
	return fmt.Sprintf("failing or missing response from %[1]v: bad status from %[1]v: %[2]d", e.at, e.code)
}

var errTooLong = errors.New("the answer is too long")
