package storageversion

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/identity"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

// started is a server with the entries of two.
type started struct {
	*parttest.Server
	one, two *records
}

func start(t *testing.T) *started {
	t.Helper()
	s := &started{}
	s.Server = parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}), part.Part{
		Resources: func(_ *part.Host, all []*catalog.Resource) []*catalog.Resource { return onDemand(t, all) },
		Handlers: func(h *part.Host) part.Handlers {
			s.one, s.two = newRecords(h), newRecords(h)
			return part.Handlers{}
		},
	})
	s.one.server, s.two.server = identity.Name("one"), identity.Name("two")
	if err := control.Bootstrap(t.Context(), s.Verbs); err != nil {
		t.Fatal(err)
	}
	return s
}

// write writes the entries of a server, and waits until the view has them.
func (s *started) write(r *records) {
	s.Helper()
	s.CatchUp()
	if err := r.write(s.Context(), true); err != nil {
		s.Fatal(err)
	}
	s.CatchUp()
}

// follow writes the entries of a server that a change of definitions brings.
func (s *started) follow(r *records) {
	s.Helper()
	s.CatchUp()
	if err := r.write(s.Context(), false); err != nil {
		s.Fatal(err)
	}
	s.CatchUp()
}

// shown returns the content of a StorageVersion as "common: server=version ...", or "" if it does not exist.
func (s *started) shown(name string) string {
	s.Helper()
	s.CatchUp()
	e := s.View.Collection(ref.StorageVersions.Prefix).Snapshot().Get("", name)
	if e == nil {
		return ""
	}
	v, err := read(e)
	if err != nil {
		s.Fatal(err)
	}
	out := "?:"
	if v.Status.CommonEncodingVersion != nil {
		out = *v.Status.CommonEncodingVersion + ":"
	}
	for _, one := range v.Status.StorageVersions {
		server := map[string]string{s.one.server: "one", s.two.server: "two"}[one.APIServerID]
		out += " " + server + "=" + one.EncodingVersion
	}
	return out
}

func (s *started) want(name, want string) {
	s.Helper()
	if got := s.shown(name); got != want {
		s.Errorf("%s is %q, want %q", name, got, want)
	}
}

const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
	"metadata":{"name":"foos.example.com","uid":"1"},"spec":{"group":"example.com","scope":"Namespaced",
	"names":{"plural":"foos","singular":"foo","kind":"Foo","listKind":"FooList"},"versions":[
	{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},
	{"name":"v2","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]},
	"status":{"acceptedNames":{"plural":"foos","singular":"foo","kind":"Foo","listKind":"FooList"},
	"storedVersions":["v1"],"conditions":[{"type":"Established","status":"True"},{"type":"NamesAccepted","status":"True"}]}}`

// TestRecords checks that servers write their entries once beside others' entries, and that an entry is removed with
// its server or its definition.
func TestRecords(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.write(s.one)
	s.want("apps.deployments", "apps/v1: one=apps/v1")
	s.want("core.events", "v1: one=v1")
	s.want("events.k8s.io.events", "")
	before := s.View.Revision()
	s.write(s.one)
	if now := s.View.Revision(); now != before {
		t.Errorf("all was there, and there were %d writes", now-before)
	}
	s.write(s.two)
	s.want("apps.deployments", "apps/v1: one=apps/v1 two=apps/v1")

	// Another server that writes another version, and entries that a client has deleted.
	if err := change(t.Context(), s.Host, "apps.deployments", func(now *status) bool {
		now.StorageVersions[1] = entry{
			APIServerID: s.two.server, EncodingVersion: "apps/v9", DecodableVersions: []string{"apps/v9"},
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	s.want("apps.deployments", "?: one=apps/v1 two=apps/v9")
	s.Delete(resource, "", "core.pods")
	s.follow(s.two) // checks nothing that has not changed here
	s.want("core.pods", "")
	s.want("apps.deployments", "?: one=apps/v1 two=apps/v9")
	s.write(s.two)
	s.want("apps.deployments", "apps/v1: one=apps/v1 two=apps/v1")
	s.want("core.pods", "v1: two=v1")

	s.serve(definition)
	s.follow(s.one)
	s.follow(s.two)
	s.want("example.com.foos", "example.com/v1: one=example.com/v1 two=example.com/v1")
	s.serve(strings.Replace(strings.Replace(definition, `"storage":true`, `"storage":false`, 1),
		`"served":false,"storage":false`, `"served":true,"storage":true`, 1))
	s.follow(s.one)
	s.want("example.com.foos", "?: one=example.com/v2 two=example.com/v1")
	s.serve("")
	s.follow(s.one)
	s.want("example.com.foos", "example.com/v1: two=example.com/v1")
	s.follow(s.two)
	s.want("example.com.foos", "")
}

// serve sets the catalog's definition, or none, and checks that this wakes the records.
func (s *started) serve(text string) {
	s.Helper()
	for _, r := range []*records{s.one, s.two} {
		select {
		case <-r.wake:
		default:
		}
	}
	const key = control.DefinitionsPrefix + "/foos.example.com"
	var err error
	switch e := s.View.Collection(control.DefinitionsPrefix).Snapshot().Get("", "foos.example.com"); {
	case text == "":
		_, err = s.Store.Delete(s.Context(), key, e.Revision)
	case e == nil:
		_, err = s.Store.Create(s.Context(), key, []byte(text))
	default:
		_, err = s.Store.Update(s.Context(), key, []byte(text), e.Revision)
	}
	if err != nil {
		s.Fatal(err)
	}
	s.CatchUp()
	if len(s.one.wake) != 1 || len(s.two.wake) != 1 {
		s.Error("a change of definitions wakes nothing")
	}
}

// gate refuses writes of StorageVersions, as a webhook may.
type gate struct{ open bool }

func (*gate) Name() string { return "Gate" }

func (g *gate) Validate(_ context.Context, a *admit.Attributes) error {
	if a.Resource.Plural == ref.StorageVersions.Prefix && !g.open {
		return errors.New("closed")
	}
	return nil
}

// TestBarrier checks that the resource of an unwritten entry rejects writes, and that the server is not ready.
func TestBarrier(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := &gate{}
	s.Admit(g)
	s.one.Host = s.Host
	s.one.first(t.Context())
	ask := func(method, path string) string {
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		info, err := request.Parse(r)
		if err != nil {
			t.Fatal(err)
		}
		handle := s.one.barrier(r, info)
		if handle == nil {
			return ""
		}
		w := httptest.NewRecorder()
		handle(w, r, info, nil)
		var status struct {
			Message string
			Code    int
		}
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || status.Code != w.Code || w.Code != 503 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		return status.Message
	}
	if got := ask(http.MethodPost, "/apis/apps/v1/namespaces/a/deployments"); !strings.HasPrefix(got,
		"wait for storage version registration to complete for resource: deployments.apps, last seen error: ") ||
		!strings.HasSuffix(got, "closed") {
		t.Errorf("a write is answered by %q", got)
	}
	for _, blocked := range []string{"/api/v1/namespaces/a/configmaps", "/apis/events.k8s.io/v1/namespaces/a/events",
		"/apis/coordination.k8s.io/v1/namespaces/a/leases", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"} {
		if ask(http.MethodPost, blocked) == "" {
			t.Errorf("a write to %s passes", blocked)
		}
		if got := ask(http.MethodGet, blocked); got != "" {
			t.Errorf("a read of %s: %s", blocked, got)
		}
	}
	for _, passes := range []string{"/apis/internal.apiserver.k8s.io/v1alpha1/storageversions",
		"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", "/apis/authentication.k8s.io/v1/tokenreviews",
		"/apis/example.com/v1/foos", "/version"} {
		if got := ask(http.MethodPost, passes); got != "" {
			t.Errorf("a write to %s: %s", passes, got)
		}
	}
	if s.one.check() == nil {
		t.Error("the check is good while entries are missing")
	}
	g.open = true
	s.write(s.one)
	if got := ask(http.MethodPost, "/apis/apps/v1/namespaces/a/deployments"); got != "" {
		t.Errorf("after the entries are written: %s", got)
	}
	if err := s.one.check(); err != nil {
		t.Error(err)
	}
}

// TestCollector checks that only the entries of a server without a Lease are removed.
func TestCollector(t *testing.T) {
	t.Parallel()
	s := start(t)
	lease := func(server, label string) {
		s.Create(leases, "kube-system",
			`{"metadata":{"name":"`+server+`","labels":{"`+identity.Label+`":"`+label+`"}}}`)
	}
	lease(s.one.server, identity.Server)
	lease(s.two.server, identity.Server)
	s.write(s.one)
	s.write(s.two)
	c := &collector{s.Host}
	s.Does(c, "apps.deployments")
	s.want("apps.deployments", "apps/v1: one=apps/v1 two=apps/v1")
	s.Delete(leases, "kube-system", s.two.server)
	s.Does(c, "apps.deployments")
	s.want("apps.deployments", "apps/v1: one=apps/v1")
	s.want("core.pods", "v1: one=v1 two=v1") // it has not been requested
	s.Delete(leases, "kube-system", s.one.server)
	lease(s.one.server, "other")
	s.Does(c, "apps.deployments")
	s.want("apps.deployments", "")
	s.Does(c, "apps.deployments") // it is gone
	s.Does(c, "core.pods")
	s.want("core.pods", "")
}
