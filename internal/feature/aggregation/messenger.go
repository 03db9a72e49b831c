package aggregation

import (
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/transport"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/request"
)

var _ control.Remote = (*aggregator)(nil)

// As implements control.Remote.
func (a *aggregator) As(u user.Info) http.RoundTripper { return &messenger{a, u} }

// OnCreate implements control.Remote.
func (a *aggregator) OnCreate(f func(path string)) { a.onCreate = f }

// messenger sends this server's own requests to other servers, as one of its users.
type messenger struct {
	a    *aggregator
	user user.Info
}

// RoundTrip implements http.RoundTripper. The path selects the server; an unavailable one gets no request.
func (m *messenger) RoundTrip(r *http.Request) (*http.Response, error) {
	remote := m.a.remoteFor(r)
	if remote == nil {
		return nil, fmt.Errorf("no other server answers for %s", r.URL.Path)
	}
	if s := m.a.await(r.Context(), remote); !s.available() {
		text := "it has not been checked yet"
		if s != nil {
			text = s.reason + ": " + s.message
		}
		return nil, fmt.Errorf("APIService %q is not available: %s", remote.name, text)
	}
	return m.a.sendAs(r.Clone(r.Context()), remote, m.user)
}

// remoteFor returns the remote that answers a request for a resource.
func (a *aggregator) remoteFor(r *http.Request) *remote {
	t := a.table.Load()
	if t == nil {
		return nil
	}
	info, err := request.Parse(r)
	if err != nil {
		return nil
	}
	return (*t)[catalog.GroupVersionName{Group: info.Group, Version: info.Version}]
}

// sendAs sends a request to another server as a user. It changes the request.
func (a *aggregator) sendAs(out *http.Request, r *remote, u user.Info) (*http.Response, error) {
	if r.backend.broken != nil {
		return nil, r.backend.broken
	}
	address, err := a.address(out.Context(), r)
	if err != nil {
		return nil, err
	}
	out.URL.Scheme, out.URL.Host, out.Host = "https", address, address
	transport.SetAuthProxyHeaders(out, u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra())
	r.backend.requests.Add(1)
	return r.backend.Shared().RoundTrip(out)
}
