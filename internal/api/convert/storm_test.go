package convert_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/testing/leak"
	"github.com/bowsprit/bowsprit/testserver"
)

// clients is the number of concurrent requests that need the webhook.
const clients = 200

// stormy is a webhook with a configurable response.
type stormy struct {
	*httptest.Server
	answer atomic.Pointer[http.HandlerFunc]
	now    atomic.Int64 // calls being answered
}

func (h *stormy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.now.Add(1)
	defer h.now.Add(-1)
	(*h.answer.Load())(w, r)
}

func (h *stormy) do(f http.HandlerFunc) { h.answer.Store(&f) }

// good renames.
func good(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID               string           `json:"uid"`
			DesiredAPIVersion string           `json:"desiredAPIVersion"`
			Objects           []map[string]any `json:"objects"`
		} `json:"request"`
	}
	if json.NewDecoder(r.Body).Decode(&review) != nil {
		return
	}
	for _, obj := range review.Request.Objects {
		obj["apiVersion"] = review.Request.DesiredAPIVersion
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
		"response": map[string]any{
			"uid": review.Request.UID, "result": map[string]any{"status": "Success"},
			"convertedObjects": review.Request.Objects}})
}

// world is a server with CronTabs in v1, shown in v2 by a stormy webhook.
type world struct {
	*testing.T
	hook   *stormy
	client *http.Client
	host   string
}

func newWorld(t *testing.T) *world {
	h := &stormy{}
	h.do(good)
	h.Server = httptest.NewUnstartedServer(h)
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.EnableHTTP2 = true
	h.StartTLS()
	t.Cleanup(h.Close)
	config := testserver.Start(t).RESTConfig()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t, h, client, config.Host}
	t.Cleanup(client.CloseIdleConnections)
	version := func(name string, storage bool) string {
		return fmt.Sprintf(
			`{"name":"%s","served":true,"storage":%t,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`, name, storage)
	}
	w.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"crontabs.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"crontabs","kind":"CronTab"},
		"versions":[`+version("v1", true)+`,`+version("v2", false)+`],"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],
		"clientConfig":{"url":"`+h.URL+`","caBundle":"`+w.ca(h.Server)+`"}}}}}`)
	for i := range 20 {
		w.must("POST", tabs("v1"),
			fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"tab-%d"}}`, i))
	}
	return w
}

func (w *world) ca(s *httptest.Server) string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{
		Type: "CERTIFICATE", Bytes: s.Certificate().Raw,
	}))
}

func tabs(version string) string {
	return "/apis/example.com/" + version + "/namespaces/default/crontabs"
}

func (w *world) do(method, path, body string) (int, string) {
	contentType := "application/json"
	if method == "PATCH" {
		contentType = "application/merge-patch+json"
	}
	r, err := http.NewRequestWithContext(context.WithoutCancel(w.Context()), method, w.host+path,
		strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := w.client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	var status struct{ Message string }
	if resp.StatusCode >= 300 && json.Unmarshal(answer, &status) == nil {
		return resp.StatusCode, status.Message
	}
	return resp.StatusCode, string(answer)
}

func (w *world) must(method, path, body string) {
	w.Helper()
	if code, answer := w.do(method, path, body); code/100 != 2 {
		w.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
}

// touch invalidates the objects in the cache.
func (w *world) touch(with string) {
	w.Helper()
	for i := range 20 {
		w.must("PATCH", fmt.Sprintf("%s/tab-%d", tabs("v1"), i), `{"metadata":{"annotations":{"touched":"`+with+`"}}}`)
	}
}

// TestStorms checks that a misbehaving conversion webhook harms only the requests that need it, and leaves nothing
// behind.
func TestStorms(t *testing.T) {
	w := newWorld(t)
	goroutines, heap := runtime.NumGoroutine(), leak.HeapInUse()
	release := make(chan struct{})
	for _, storm := range []struct {
		name   string
		answer http.HandlerFunc
		query  string
		code   int
		want   string
	}{
		{"dies", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "", 500,
			"conversion webhook for example.com/v1, Kind=CronTab failed: Post \"" + w.hook.URL + "/?timeout=30s\": "},
		{"garbage", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"kind":`) }, "", 500,
			"conversion webhook for example.com/v1, Kind=CronTab failed: couldn't get version/kind; json parse error: "},
		{"100 MB", func(w http.ResponseWriter, _ *http.Request) {
			piece := bytes.Repeat([]byte("x"), 1<<20)
			for range 100 {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		}, "", 500,
			"conversion webhook for example.com/v1, Kind=CronTab failed: unexpected error when reading response body. Please retry. Original error: the answer exceeds the limit of "},
		{"slow", func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}, "?timeout=1s", 504, "request did not complete within"},
		{"hangs in the middle", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"kind":"Conv`)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}, "?timeout=1s", 504, "request did not complete within"},
	} {
		t.Run(storm.name, func(t *testing.T) {
			w := &world{t, w.hook, w.client, w.host}
			w.touch(storm.name)
			w.hook.do(storm.answer)
			var wg sync.WaitGroup
			for i := range clients {
				wg.Go(func() {
					path := tabs("v2")
					if i%2 == 0 {
						path += fmt.Sprintf("/tab-%d", i%20)
					}
					if code, answer := w.do("GET", path+storm.query, ""); code != storm.code ||
						!strings.Contains(answer, storm.want) {
						t.Errorf("%s: %d %.300s", path, code, answer)
					}
				})
			}
			// Other requests succeed: the stored version, other kinds, writes.
			for i := range 20 {
				wg.Go(func() {
					name := fmt.Sprintf("%s-%d", strings.ReplaceAll(strings.ToLower(storm.name), " ", "-"), i)
					for _, call := range [][3]string{
						{"GET", tabs("v1"), ""},
						{"PATCH", fmt.Sprintf("%s/tab-%d", tabs("v1"), i), `{"metadata":{"annotations":{"during":"` +
							storm.name + `"}}}`},
						{"POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"` + name + `"}}`},
						{"GET", "/api/v1/namespaces/default/configmaps/" + name, ""},
						{"DELETE", "/api/v1/namespaces/default/configmaps/" + name, ""},
					} {
						if code, answer := w.do(call[0], call[1], call[2]); code/100 != 2 {
							t.Errorf("%s %s: %d %s", call[0], call[1], code, answer)
						}
					}
				})
			}
			wg.Wait()
			w.hook.do(good)
			if code, answer := w.do("GET", tabs("v2"), ""); code != http.StatusOK ||
				strings.Count(answer, `"kind":"CronTab"`) != 20 {
				t.Errorf("after the storm: %d %.300s", code, answer)
			}
		})
	}
	close(release)
	t.Run("wrong certificate", func(t *testing.T) {
		w := &world{t, w.hook, w.client, w.host}
		w.touch("certificate")
		w.must("PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.example.com",
			`{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":null}}}}}`)
		var wg sync.WaitGroup
		for range clients / 5 { // each has its own handshake, which takes a busy machine a while
			wg.Go(func() {
				if code, answer := w.do("GET", tabs("v2"), ""); code != 500 ||
					!strings.Contains(answer,
						"tls: failed to verify certificate: x509: certificate signed by unknown authority") {
					t.Errorf("%d %.300s", code, answer)
				}
			})
		}
		wg.Wait()
	})
	w.client.CloseIdleConnections()
	leak.Settle(t, "calls", func() (int64, int64) { return w.hook.now.Load(), 0 })
	leak.Settle(t, "goroutines", func() (int64, int64) { return int64(runtime.NumGoroutine()), int64(goroutines + 60) })
	leak.Settle(t, "bytes of heap", func() (int64, int64) { return leak.HeapInUse(), heap + 64<<20 })
}

// TestOthersGoOn checks that no other request waits while many clients wait for the webhook; then the webhook responds.
func TestOthersGoOn(t *testing.T) {
	w := newWorld(t)
	requested, answer := make(chan struct{}), make(chan struct{})
	w.hook.do(func(rw http.ResponseWriter, r *http.Request) {
		requested <- struct{}{}
		<-answer
		good(rw, r)
	})
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			if code, answer := w.do("GET", tabs("v2"), ""); code != http.StatusOK {
				t.Errorf("%d %.300s", code, answer)
			}
		})
	}
	<-requested // all of them share one call
	w.must("GET", tabs("v1"), "")
	w.must("PATCH", tabs("v1")+"/tab-0", `{"metadata":{"annotations":{"a":"b"}}}`)
	w.must("DELETE", tabs("v1")+"/tab-1", "")
	w.must("POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"c"}}`)
	w.must("GET", "/api/v1/configmaps", "")
	w.must("DELETE", "/api/v1/namespaces/default/configmaps/c", "")
	close(answer)
	go func() { // requests after the change call the webhook again
		for range requested {
			continue
		}
	}()
	wg.Wait()
	close(requested)
}
