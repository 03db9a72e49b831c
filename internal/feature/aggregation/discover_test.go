package aggregation_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

const acceptAggregated = "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discovered returns the discovery of version v1 of a group.
func (c *cluster) discovered(group string) (out apidiscoveryv2.APIVersionDiscovery) {
	c.Helper()
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal([]byte(c.must("GET", "/apis", "", acceptAggregated)), &list); err != nil {
		c.Fatal(err)
	}
	for _, g := range list.Items {
		for _, v := range g.Versions {
			if g.Name == group && v.Version == "v1" {
				return v
			}
		}
	}
	return out
}

// poke has the APIServices of the service checked.
func (c *cluster) poke() {
	c.Helper()
	c.must("PATCH", "/api/v1/namespaces/default/services/api",
		`{"metadata":{"labels":{"poked":"`+rand.Text()+`"}}}`, "Content-Type: application/merge-patch+json")
}

// back requests a path until the other server is found to be available again: at the first request, unless the machine
// is so busy that the check takes longer than the request waits.
func (c *cluster) back(path string) {
	c.Helper()
	for c.Context().Err() == nil {
		switch code, body := c.do("GET", path, ""); code {
		case http.StatusOK:
			return
		case http.StatusServiceUnavailable:
		default:
			c.Fatalf("GET %s: %d %s", path, code, body)
		}
	}
}

// discoveryServer is a server that lists its resources in the aggregated form, under an ETag.
type discoveryServer struct {
	mu       sync.Mutex
	body     string        // "" means 503
	broken   bool          // the check, which requests another path, fails
	requests []string      // If-None-Match of each request
	next     chan struct{} // closed and replaced at each request
}

func (d *discoveryServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/apis" {
		if r.Header.Get("Accept") != "" { // like a server that has only the aggregated form
			w.WriteHeader(http.StatusNotAcceptable)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.broken {
			w.WriteHeader(http.StatusInternalServerError)
		}
		return // 200 is enough to be available
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests = append(d.requests, r.Header.Get("If-None-Match"))
	close(d.next)
	d.next = make(chan struct{})
	switch {
	case d.body == "":
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.Header.Get("If-None-Match") == `"one"`:
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("Etag", `"one"`)
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = io.WriteString(w, d.body)
	}
}

// await makes the server fetch until it has sent the given etag.
func (d *discoveryServer) await(c *cluster, etag string) {
	c.Helper()
	for {
		d.mu.Lock()
		found, next := slices.Contains(d.requests, etag), d.next
		d.mu.Unlock()
		if found {
			return
		}
		c.poke()
		select {
		case <-next:
		case <-c.Context().Done():
			c.Fatalf("not asked with %q", etag)
		}
	}
}

// TestAggregatedForm reads the resources of a server with aggregated discovery: in its order, with missing kinds filled
// in, and only after changes.
func TestAggregatedForm(t *testing.T) {
	c := start(t)
	d := &discoveryServer{next: make(chan struct{})}
	b := serveBackend(t, nil)
	b.Config.Handler = d
	c.service()
	c.register(b, "")
	c.available()
	if v := c.discovered(group); v.Freshness != apidiscoveryv2.DiscoveryFreshnessStale || v.Resources != nil {
		t.Errorf("a server that says nothing of its resources has %+v", v)
	}
	d.mu.Lock()
	d.body = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
		{"metadata":{"name":"other.example.com"},"versions":[{"version":"v1","resources":[{"resource":"others"}]}]},
		{"metadata":{"name":"` + group + `"},"versions":[{"version":"v2"},{"version":"v1","resources":[
		{"resource":"zebras","scope":"Namespaced","verbs":["get"],"responseKind":{"kind":"Zebra"},
		"subresources":[{"subresource":"stripes","verbs":["get"]}]},{"resource":"apes","scope":"Cluster"}]}]}]}`
	d.mu.Unlock()
	d.await(c, `"one"`)
	v := c.discovered(group)
	if len(v.Resources) != 2 || v.Freshness != apidiscoveryv2.DiscoveryFreshnessCurrent ||
		v.Resources[0].Resource != "zebras" || v.Resources[0].ResponseKind.Kind != "Zebra" ||
		v.Resources[0].Subresources[0].ResponseKind == nil || v.Resources[1].ResponseKind == nil {
		t.Errorf("%+v", v)
	}
	d.mu.Lock()
	d.broken = true
	d.mu.Unlock()
	c.poke()
	c.condition("v1."+group, func(status, _, _ string) bool { return status == "False" })
	if v := c.discovered(group); v.Freshness != apidiscoveryv2.DiscoveryFreshnessCurrent || len(v.Resources) != 2 {
		t.Errorf("of a server that is not available, and says what it has: %+v", v)
	}
}

// TestRestart restarts a server after its other server has gone: the saved documents are served, and later ones replace
// them.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := testserver.Start(t, func(c *bowsprit.Config) { c.Ephemeral, c.DataDir = false, dir })
	c := clientOf(t, server.RESTConfig())
	b := serveBackend(t, nil)
	c.service()
	c.register(b, "")
	c.available()
	if v := c.discovered(group); len(v.Resources) != 1 {
		t.Fatalf("before: %+v", v)
	}
	b.set(func(b *backend) { b.resources = "" })
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	c = clientOf(t, testserver.Start(t, func(c *bowsprit.Config) { c.Ephemeral, c.DataDir = false, dir }).RESTConfig())
	v := c.discovered(group)
	if v.Freshness != apidiscoveryv2.DiscoveryFreshnessStale || len(v.Resources) != 1 ||
		v.Resources[0].Resource != "flunders" || len(v.Resources[0].Subresources) != 1 {
		t.Errorf("afterwards: %+v", v)
	}
	c.condition("v1."+group, func(status, _, _ string) bool { return status == "False" })
	b.set(func(b *backend) { b.resources = strings.ReplaceAll(flunders, `"flunders`, `"plunders`) })
	c.back("/apis/" + group + "/v1")
	c.available()
	if v := c.discovered(group); v.Freshness != apidiscoveryv2.DiscoveryFreshnessCurrent || len(v.Resources) != 1 ||
		v.Resources[0].Resource != "plunders" {
		t.Errorf("when it is back: %+v", v)
	}
}

// TestOpenAPI merges the documents of two servers, one with another definition of the same name, with this server's.
// The result is JSON although this server has nothing in their groups, and a second request with the ETag is answered
// with 304.
func TestOpenAPI(t *testing.T) {
	c := start(t)
	document := func(group, field string) string {
		return `{"swagger":"2.0","info":{"title":"x","version":"1"},"paths":{"/apis/` + group + `/v1/":{"get":{
			"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/Thing"}}}}},"/apis/elsewhere/":{}},
			"definitions":{"Thing":{"type":"object","properties":{"` + field + `":{"type":"string"}}}}}`
	}
	const two = "two.example.com"
	one, other := serveBackend(t, nil), serveBackend(t, nil)
	for b, doc := range map[*backend]string{one: document(group, "a"), other: document(two, "b")} {
		answer := b.Config.Handler
		b.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/openapi/v2":
				_, _ = io.WriteString(w, doc)
			case r.URL.Path == "/apis/"+two+"/v1":
				_, _ = io.WriteString(w, strings.ReplaceAll(flunders, group, two))
			default:
				answer.ServeHTTP(w, r)
			}
		})
	}
	c.service()
	c.register(one, "")
	c.must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", fmt.Sprintf(
		`{"metadata":{"name":"v1.%s"},"spec":{"group":%[1]q,"version":"v1","groupPriorityMinimum":2000,
		"versionPriority":10,"insecureSkipTLSVerify":true,
		"service":{"namespace":"default","name":"api","port":%d}}}`, two, other.port))
	var doc struct {
		Paths       map[string]struct{}
		Definitions map[string]struct{ Properties map[string]json.RawMessage }
	}
	for len(doc.Definitions["Thing"].Properties) == 0 || len(doc.Definitions["Thing_v2"].Properties) == 0 {
		if err := json.Unmarshal([]byte(c.must("GET", "/openapi/v2", "")), &doc); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := doc.Paths["/apis/elsewhere/"]; ok || doc.Definitions["Thing"].Properties["b"] == nil ||
		doc.Definitions["Thing_v2"].Properties["a"] == nil { // with equal priority the group that sorts first wins
		t.Errorf("%v %v", doc.Definitions["Thing"], doc.Definitions["Thing_v2"])
	}
	for _, at := range []string{group, two} {
		if _, ok := doc.Paths["/apis/"+at+"/v1/"]; !ok {
			t.Errorf("no path of %s", at)
		}
	}
	resp, err := c.client.Get(c.url + "/openapi/v2")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if code, _ := c.do("GET", "/openapi/v2", "", "If-None-Match: "+resp.Header.Get("Etag")); code != 304 {
		t.Errorf("with the ETag: %d", code)
	}
}
