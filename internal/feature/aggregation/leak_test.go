package aggregation_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/leak"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestNothingIsLeft provokes all failures of another server, and compares the number of goroutines before and
// afterwards: the server flaps a hundred times, answers ten thousand requests, breaks responses off, hangs, has a watch
// that no client reads, and lists a hundred megabytes. It is not parallel, since it counts the goroutines of the
// process.
func TestNothingIsLeft(t *testing.T) {
	c := clientOf(t, testserver.Start(t).RESTConfig())
	gone := make(chan struct{}, 1) // the unread watch has ended
	b := serveBackend(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("fault") {
		case "break":
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "hang":
			<-r.Context().Done()
		case "flood":
			for event := strings.Repeat("x", 64<<10); r.Context().Err() == nil; {
				if _, err := io.WriteString(w, event); err != nil {
					break
				}
			}
			gone <- struct{}{}
		default:
			_, _ = io.WriteString(w, "fine")
		}
	})
	c.service()
	c.register(b, "")
	c.available()
	c.must("GET", anyone, "")
	before := int64(runtime.NumGoroutine())

	flap(c, b, 100)
	c.many(10_000)
	for range 20 {
		resp, err := c.client.Get(c.url + anyone + "?fault=break")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body) // it breaks off
		resp.Body.Close()
		if code, _ := c.do("GET", anyone+"?fault=hang&timeout=1ms", ""); code != 504 {
			t.Errorf("hang: %d", code)
		}
	}
	c.unread(gone)
	b.set(func(b *backend) { b.resources = strings.Repeat(" ", 100<<20) + flunders })
	c.poke()
	c.back(anyone)
	c.must("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1."+group, "")
	if code, _ := c.do("GET", anyone, ""); code != 404 {
		t.Errorf("after the APIService: %d", code)
	}

	c.client.CloseIdleConnections()
	leak.Settle(t, "goroutines", func() (now, most int64) { return int64(runtime.NumGoroutine()), before })
}

// flap makes the server unavailable and available again n times.
func flap(c *cluster, b *backend, n int) {
	c.Helper()
	for range n {
		b.set(func(b *backend) { b.resources = "" })
		c.poke()
		c.condition("v1."+group, func(status, _, _ string) bool { return status == "False" })
		b.set(func(b *backend) { b.resources = flunders })
		c.back(anyone)
	}
	c.available()
}

// many sends n requests, some at the same time.
func (c *cluster) many(n int) {
	c.Helper()
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			for range n / 20 {
				if code, body := c.do("GET", anyone, ""); code != 200 || body != "fine" {
					c.Errorf("%d %s", code, body)
					return
				}
			}
		})
	}
	clients.Wait()
}

// unread starts a watch, does not read it, and disconnects, while other requests are answered.
func (c *cluster) unread(gone <-chan struct{}) {
	c.Helper()
	ctx, leave := context.WithCancel(c.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, "GET", c.url+anyone+"?watch=true&fault=flood", nil)
	if err != nil {
		c.Fatal(err)
	}
	resp, err := c.client.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	for range 20 {
		c.must("GET", anyone, "")
		c.must("GET", "/api/v1/namespaces", "")
	}
	leave()
	<-gone
}

// TestHangingServers runs forty servers that do not answer: a healthy one is available all the same, this server's
// resources are served, and a namespace can be deleted.
func TestHangingServers(t *testing.T) {
	c := start(t)
	ended := make(chan struct{})
	hanging := serveBackend(t, nil)
	hanging.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	})
	t.Cleanup(func() { close(ended) }) // before the server is closed, which waits for them
	b := serveBackend(t, nil)
	c.service()
	for i := range 40 {
		c.must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", fmt.Sprintf(
			`{"metadata":{"name":"v1.h%d.example.com"},"spec":{"group":"h%[1]d.example.com","version":"v1",
			"groupPriorityMinimum":2000,"versionPriority":10,"caBundle":%q,"service":{"namespace":"default",
			"name":"api","port":%d}}}`, i, base64.StdEncoding.EncodeToString(hanging.ca), hanging.port))
	}
	c.register(b, "")
	c.available()
	c.must("GET", "/apis/"+group+"/v1", "")
	c.must("GET", "/apis", "", acceptAggregated)
	c.must("GET", "/api/v1/namespaces", "")
	c.must("POST", "/api/v1/namespaces", `{"metadata":{"name":"goes"}}`)
	c.must("DELETE", "/api/v1/namespaces/goes", "")
	c.until("goes", "gone", func(kind, _ string) bool { return kind == "DELETED" })
}

// TestIdle checks that two hundred APIServices without requests cost less than a goroutine each, and at most 20 MB. It
// is not parallel, since it counts the goroutines and memory of the process.
func TestIdle(t *testing.T) {
	c := clientOf(t, testserver.Start(t).RESTConfig())
	b := serveBackend(t, nil)
	b.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if of, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/v1"); ok {
			_, _ = io.WriteString(w, strings.ReplaceAll(flunders, group, of))
			return
		}
		http.NotFound(w, r)
	})
	c.service()
	c.register(b, "")
	c.available()
	c.client.CloseIdleConnections()
	goroutines, heap := int64(runtime.NumGoroutine()), leak.HeapInUse()
	const n = 200
	for i := range n {
		c.must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", fmt.Sprintf(
			`{"metadata":{"name":"v1.i%d.example.com"},"spec":{"group":"i%[1]d.example.com","version":"v1",
			"groupPriorityMinimum":2000,"versionPriority":10,"caBundle":%q,"service":{"namespace":"default",
			"name":"api","port":%d}}}`, i, base64.StdEncoding.EncodeToString(b.ca), b.port))
	}
	for i := range n {
		c.condition(fmt.Sprintf("v1.i%d.example.com", i), func(_, reason, _ string) bool { return reason == "Passed" })
	}
	c.client.CloseIdleConnections()
	leak.Settle(t, "goroutines", func() (now, most int64) { return int64(runtime.NumGoroutine()), goroutines + n/20 })
	leak.Settle(t, "bytes", func() (now, most int64) { return leak.HeapInUse(), heap + 20<<20 })
	t.Logf("%d KiB for %d APIServices", (leak.HeapInUse()-heap)>>10, n)
}
