package aggregation_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// until waits for an event of a namespace.
func (c *cluster) until(namespace, desc string, true_ func(kind, object string) bool) {
	c.Helper()
	code, now := c.do("GET", "/api/v1/namespaces/"+namespace, "")
	if code == http.StatusNotFound && true_("DELETED", "") || code == http.StatusOK && true_("", now) {
		return
	}
	var have struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(now), &have); err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", c.url+
		"/api/v1/namespaces?watch=1&resourceVersion="+have.Metadata.ResourceVersion+
		"&fieldSelector=metadata.name%3D"+namespace, nil)
	if err != nil {
		c.Fatal(err)
	}
	resp, err := c.client.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	last := ""
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var ev struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &ev); err != nil {
			c.Fatal(err)
		}
		if last = string(ev.Object); true_(ev.Type, last) {
			return
		}
	}
	c.Fatalf("namespace %s: not %s; last %s", namespace, desc, last)
}

// TestNamespaceDeletion checks that the deletion of a namespace deletes another server's objects in it, waits for an
// unavailable server that may have objects, and does not wait for one that cannot.
func TestNamespaceDeletion(t *testing.T) {
	c := start(t)
	var deleted atomic.Bool
	b := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/namespaces/refused/") {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		if !strings.Contains(r.URL.Path, "/namespaces/full/") {
			_, _ = io.WriteString(w, `{"items":[]}`)
			return
		}
		if r.Method == http.MethodDelete {
			if r.Header.Get("X-Remote-User") != "system:serviceaccount:kube-system:namespace-controller" {
				t.Errorf("deleted by %s", r.Header.Get("X-Remote-User"))
			}
			deleted.Store(true)
		}
		if deleted.Load() {
			_, _ = io.WriteString(w, `{"items":[]}`)
			return
		}
		_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"a"}}]}`)
	})
	c.service()
	c.register(b, "")
	c.available()
	gone := func(kind, _ string) bool { return kind == "DELETED" }
	for _, name := range []string{"full", "waits", "goes", "refused"} {
		c.must("POST", "/api/v1/namespaces", `{"metadata":{"name":"`+name+`"}}`)
	}
	c.must("DELETE", "/api/v1/namespaces/full", "")
	c.until("full", "gone", gone)
	if !deleted.Load() {
		t.Error("what the other server has is left")
	}
	c.must("DELETE", "/api/v1/namespaces/refused", "")
	c.until("refused", "failing", func(_, object string) bool {
		return strings.Contains(object, "1 remaining: v1."+group+": GET /apis/"+group+"/v1/namespaces/refused/") &&
			strings.Contains(object, ": 500 Internal Server Error\"") && !strings.Contains(object, "https://")
	})
	touch := func() {
		c.must("PATCH", "/api/v1/namespaces/default/services/api",
			`{"metadata":{"labels":{"at":"`+time.Now().Format("150405.000")+`"}}}`,
			"Content-Type: application/merge-patch+json")
	}
	name := "v1." + group
	b.set(func(b *backend) { b.resources = "" })
	touch()
	c.condition(name, func(status, _, _ string) bool { return status == "False" })
	c.must("DELETE", "/api/v1/namespaces/waits", "")
	c.until("waits", "waiting", func(_, object string) bool {
		return strings.Contains(object, `"Discovery failed for some groups, 1 failing: unable to retrieve the `+
			`complete list of server APIs: `+group+`/v1: stale GroupVersion discovery: `+group+`/v1"`)
	})
	b.set(func(b *backend) {
		b.resources = strings.ReplaceAll(flunders, `"create","delete","deletecollection","get"`, `"get"`)
	})
	touch()
	c.available()
	c.until("waits", "gone", gone)
	b.set(func(b *backend) { b.resources = "" })
	touch()
	c.condition(name, func(status, _, _ string) bool { return status == "False" })
	c.must("DELETE", "/api/v1/namespaces/goes", "")
	c.until("goes", "gone", gone)
}
