package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/discovery"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/forward"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/testing/servetest"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	advertised := func() (netip.Addr, error) { return netip.MustParseAddr("192.0.2.1"), nil }
	none := func() (netip.Addr, error) { return netip.Addr{}, errors.New("no address") }
	for _, test := range []struct {
		settings Settings
		want     string // "" if the server has no address
	}{
		{Settings{Advertised: advertised}, "192.0.2.1:6443"},
		{Settings{Advertised: none}, ""},
		{Settings{Advertised: none, IP: "127.0.0.1"}, "127.0.0.1:6443"},
		{Settings{Advertised: advertised, Port: "443"}, "192.0.2.1:443"},
		{Settings{Advertised: none, IP: "2001:db8::1", Port: "7"}, "[2001:db8::1]:7"},
		{Settings{Advertised: none, IP: "host"}, ""},
	} {
		if address, err := test.settings.address(6443); address != test.want || (err == nil) != (address != "") {
			t.Errorf("%+v: %q %v", test.settings, address, err)
		}
	}
}

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// newTest returns peers with connections that fail for the address of "dead", and otherwise lead to a test server.
func newTest(t *testing.T, serve http.HandlerFunc) *peers {
	t.Helper()
	other := httptest.NewTLSServer(serve)
	t.Cleanup(other.Close)
	p := &peers{
		host: &part.Host{
			Egress: &egress.Egress{}, Catalog: catalog.New(), Now: time.Now, Log: slog.New(slog.DiscardHandler),
		},
		servers: map[string]*server{}, here: map[schema.GroupVersion]bool{},
		deleted: map[schema.GroupVersion]time.Time{}, metrics: newMetrics(), published: discovery.NewPeers(),
	}
	p.proxy = p.newProxy()
	p.connections.Store(forward.NewConnections(&tls.Config{InsecureSkipVerify: true},
		func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "dead") {
				return nil, errors.New("it is not there")
			}
			return (&net.Dialer{}).DialContext(ctx, network, other.Listener.Addr().String())
		}, func() *tls.Certificate { return nil }))
	return p
}

func (p *peers) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	info := &request.Info{IsResource: true, Group: jobs.Group, Version: jobs.Version, Resource: jobs.Resource}
	p.elsewhere(r, info)(w, r, info, &user.DefaultInfo{Name: "jane", UID: "u", Groups: []string{"g"}})
	return w
}

// TestUnreached checks that an unreachable server is skipped while another one serves the resource, and that the
// request's body is not lost.
func TestUnreached(t *testing.T) {
	t.Parallel()
	p := newTest(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Header.Get("X-Remote-User")+r.Header.Get(proxiedHeader)+string(body))
	})
	defer p.connections.Load().CloseIdle()
	p.table.Store(&table{jobs: {
		{name: "a", address: "dead:1"}, {name: "b", address: "alive:1"}, {name: "c", address: "dead:2"},
	}})
	for range 20 {
		if w := p.send(httptest.NewRequest("POST", "/", strings.NewReader("body"))); w.Code != 200 ||
			w.Body.String() != "janetruebody" {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	p.table.Store(&table{jobs: {{name: "a", address: "dead:1"}}})
	w := p.send(httptest.NewRequest("GET", "/", nil))
	if s := servetest.Status(t, w); s.Code != 503 ||
		s.Message != "jobs.batch is served by another API server, which cannot be reached" {
		t.Errorf("%+v", s)
	}
	passedOn := httptest.NewRequest("GET", "/", nil)
	passedOn.Header.Set(proxiedHeader, "true")
	info := &request.Info{IsResource: true, Group: jobs.Group, Version: jobs.Version, Resource: jobs.Resource}
	if p.elsewhere(passedOn, info) != nil {
		t.Error("a request of another server is passed on")
	}
}

// TestExclude checks that requests for a definition's group are not forwarded while the definition exists, nor shortly
// after its deletion, whatever another server lists, and that earlier lists are not reused.
func TestExclude(t *testing.T) {
	t.Parallel()
	p := newTest(t, nil)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p.host.Now = func() time.Time { return now }
	groups := []apidiscoveryv2.APIGroupDiscovery{
		{ObjectMeta: metav1.ObjectMeta{Name: "g.io"}, Versions: []apidiscoveryv2.APIVersionDiscovery{
			{Version: "v1", Resources: []apidiscoveryv2.APIResourceDiscovery{{Resource: "foos"}}},
			{Version: "v2", Resources: []apidiscoveryv2.APIResourceDiscovery{{Resource: "foos"}}},
		}},
	}
	s := &server{name: "a", address: "alive:1", groups: groups}
	p.servers["a"] = s
	known := func() (out string) {
		p.exclude()
		p.publish()
		if t := p.table.Load(); t != nil {
			for _, version := range []string{"v1", "v2"} {
				if (*t)[schema.GroupVersionResource{Group: "g.io", Version: version, Resource: "foos"}] != nil {
					out += version
				}
			}
		}
		return out
	}
	want := func(want string) {
		t.Helper()
		if got := known(); got != want {
			t.Errorf("asked for %q, want %q", got, want)
		}
	}
	want("v1v2")
	v1 := &catalog.Version{Name: "v1", Served: true}
	foos := &catalog.Resource{
		Group: "g.io", Plural: "foos", Kind: "Foo", Versions: []*catalog.Version{v1}, Storage: v1, Prefix: "g.io/foos",
		Served: true, Definition: catalog.Definition{Name: "foos.g.io", UID: "u"},
	}
	p.host.Catalog.Update(1, []*catalog.Resource{foos}, nil)
	want("v2")
	p.host.Catalog.Update(2, nil, []catalog.GroupResource{{Group: "g.io", Resource: "foos"}})
	want("v2")
	s.groups = groups // after another request, it still has it
	want("v2")
	now = now.Add(deletedFor + time.Second)
	want("v2") // its earlier list is not reused
	s.groups = groups
	want("v1v2")
}
