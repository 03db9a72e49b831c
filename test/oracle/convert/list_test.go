package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/test/oracle/apiextensions"
	"github.com/bowsprit/bowsprit/testserver"
)

// renaming is a webhook that does as little as a webhook can, and counts.
type renaming struct {
	*httptest.Server
	calls, objects atomic.Int64
}

func newRenaming(t testing.TB) *renaming {
	h := &renaming{}
	h.Server = httptest.NewUnstartedServer(h)
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.EnableHTTP2 = true
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

func (h *renaming) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID               string                       `json:"uid"`
			DesiredAPIVersion string                       `json:"desiredAPIVersion"`
			Objects           []map[string]json.RawMessage `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.calls.Add(1)
	h.objects.Add(int64(len(review.Request.Objects)))
	for _, obj := range review.Request.Objects {
		obj["apiVersion"], _ = json.Marshal(review.Request.DesiredAPIVersion)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
		"response": map[string]any{
			"uid": review.Request.UID, "result": map[string]any{"status": "Success"},
			"convertedObjects": review.Request.Objects,
		}})
}

// side is one of the two servers, with objects stored in v1.
type side struct {
	testing.TB
	client *http.Client
	host   string
	hook   *renaming
	edits  int
	// of the last request: a client that makes room for each answer anew takes longer than the server
	answer bytes.Buffer
}

const definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// newClient returns a side without objects and without a webhook.
func newClient(t testing.TB, config *rest.Config) *side {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	host := config.Host
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	return &side{TB: t, client: client, host: strings.TrimSuffix(host, "/")}
}

func newSide(t testing.TB, config *rest.Config, objects int) *side {
	s := newClient(t, config)
	s.hook = newRenaming(t)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.hook.Certificate().Raw})
	version := func(name string, storage bool) map[string]any {
		return map[string]any{"name": name, "served": true, "storage": storage,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object",
				"properties": map[string]any{
					"spec": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				},
			}}}
	}
	s.must("POST", definition, "application/json", map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "crontabs.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Cluster",
			"names":    map[string]any{"plural": "crontabs", "kind": "CronTab"},
			"versions": []any{version("v1", true), version("v2", false)},
			"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"conversionReviewVersions": []string{"v1"},
				"clientConfig":             map[string]any{"url": s.hook.URL, "caBundle": ca},
			}},
		},
	})
	s.until("/apis/example.com/v2/crontabs", func(code int, _ []byte) bool { return code == http.StatusOK })
	for i := range objects {
		s.must("POST", "/apis/example.com/v1/crontabs", "application/json", map[string]any{
			"apiVersion": "example.com/v1", "kind": "CronTab",
			"metadata": map[string]any{"name": fmt.Sprintf("tab-%d", i)},
			"spec":     map[string]any{"hostPort": "h:1", "padding": strings.Repeat("x", 1000)},
		})
	}
	return s
}

// do sends a request. The answer is good until the next one.
func (s *side) do(method, path, contentType string, body any) (int, []byte) {
	s.Helper()
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			s.Fatal(err)
		}
		reader = strings.NewReader(string(raw))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.host+path, reader)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	s.answer.Reset()
	if _, err := s.answer.ReadFrom(resp.Body); err != nil {
		s.Fatal(err)
	}
	return resp.StatusCode, s.answer.Bytes()
}

func (s *side) must(method, path, contentType string, body any) []byte {
	s.Helper()
	code, answer := s.do(method, path, contentType, body)
	if code/100 != 2 {
		s.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}

// until repeats a request until the response is good. The other server gives no other sign: it serves a kind some time
// after the last event of its definition.
func (s *side) until(path string, good func(code int, body []byte) bool) {
	s.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		code, body := s.do("GET", path, "", nil)
		if good(code, body) {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("%s: %d %s", path, code, body)
		}
	}
}

// list reads all objects in a version; v1 is the stored version. The other server answers 429 while it fills its cache.
func (s *side) list(version string) []byte {
	s.Helper()
	for {
		code, body := s.do("GET", "/apis/example.com/"+version+"/crontabs", "", nil)
		if code == http.StatusOK {
			return body
		}
		if code != http.StatusTooManyRequests {
			s.Fatalf("%d %s", code, body)
		}
	}
}

// edit changes the definition, so that the server converts all objects again, and waits until the change is in effect.
func (s *side) edit() {
	s.Helper()
	s.edits++
	short := fmt.Sprintf("ct%d", s.edits)
	s.must("PATCH", definition+"/crontabs.example.com", "application/merge-patch+json",
		map[string]any{"spec": map[string]any{"names": map[string]any{"shortNames": []string{short}}}})
	s.until("/apis/example.com/v1",
		func(_ int, body []byte) bool { return strings.Contains(string(body), `"`+short+`"`) })
}

// sides runs a benchmark on the compared servers. Without its cache Kubernetes converts at every read.
func sides(b *testing.B, run func(b *testing.B, s *side)) {
	b.Run("impl=Bowsprit", func(b *testing.B) { run(b, newSide(b, testserver.Start(b).RESTConfig(), 1000)) })
	b.Run("impl=Kubernetes", func(b *testing.B) { run(b, newSide(b, apiextensions.Start(b).Config, 1000)) })
	b.Run("impl=Kubernetes/watch-cache=false", func(b *testing.B) {
		run(b, newSide(b, apiextensions.Start(b, "--watch-cache=false").Config, 1000))
	})
}

// BenchmarkFirstList is a list of 1,000 objects in another version than the stored one after a change of the
// definition.
func BenchmarkFirstList(b *testing.B) {
	sides(b, func(b *testing.B, s *side) {
		calls := s.hook.calls.Load()
		for b.Loop() {
			b.StopTimer()
			s.edit()
			b.StartTimer()
			s.list("v2")
		}
		b.ReportMetric(float64(s.hook.calls.Load()-calls)/float64(b.N), "calls/op")
	})
}

// BenchmarkList repeats the same list in both versions: the stored one shows the cost of a list without conversion,
// including the client's reading.
func BenchmarkList(b *testing.B) {
	sides(b, func(b *testing.B, s *side) {
		for _, version := range []string{"v2", "v1"} {
			b.Run("version="+version, func(b *testing.B) {
				s.list(version)
				calls, busy := s.hook.calls.Load(), cpu(b)
				for b.Loop() {
					s.list(version)
				}
				b.ReportMetric(float64(s.hook.calls.Load()-calls)/float64(b.N), "calls/op")
				b.ReportMetric(float64((cpu(b)-busy).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			})
		}
	})
}

// cpu is the processor time of server, client and webhook so far. Other work on the machine changes it little.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestHundredLists checks that the server converts an object once for many reads.
func TestHundredLists(t *testing.T) {
	s := newSide(t, testserver.Start(t).RESTConfig(), 1000)
	for range 100 {
		if n := strings.Count(string(s.list("v2")), `"apiVersion":"example.com/v2"`); n != 1001 {
			t.Fatalf("the list names v2 %d times", n)
		}
	}
	if calls, objects := s.hook.calls.Load(), s.hook.objects.Load(); objects != 1000 || calls != 1 {
		t.Errorf("%d objects were converted in %d calls", objects, calls)
	}
}
