package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/testing/growth"
	"github.com/bowsprit/bowsprit/testserver"
)

// subject is an object with a list of any length.
type subject struct {
	name, collection string
	status           bool // the kind has a status subresource
	object           func(n int) map[string]any
	reverse          func(obj map[string]any) // the order of the list's elements
}

// TestGrowthOfRequests sends objects of TestGrowth (test/attack/lists), and custom objects, to a server: it creates,
// reads, updates, patches, applies and deletes them, with the default admission plugins, a limit range, a quota and a
// policy. It counts the CPU time of the whole process, and looks for costs that grow with the square of the length. It
// takes minutes, so only `make attack` runs it.
func TestGrowthOfRequests(t *testing.T) {
	only := os.Getenv("ATTACK")
	if only == "" {
		t.Skip("make attack runs this test")
	}
	server := testserver.Start(t)
	client, err := rest.HTTPClientFor(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	s := site{client, server.URL()}
	for _, o := range strings.Split(setup, "\n---\n") {
		collection, body, _ := strings.Cut(strings.TrimSpace(o), "\n")
		if code, answer := s.send(t, http.MethodPost, collection, "application/yaml", []byte(body)); code != 201 {
			t.Fatalf("%s: %d %s", collection, code, answer)
		}
	}
	measured, accepted := 0, 0
	for _, sub := range slices.Concat(builtIn(t), custom()) {
		if only != "all" && !strings.Contains(sub.name, only) {
			continue
		}
		before, created := s.costs(t, sub, 1000)
		if measured++; created {
			accepted++
		}
		for n := 3000; n <= 9000 && slices.Max(slices.Collect(maps.Values(before))) > 50*time.Millisecond; n *= 3 {
			after, _ := s.costs(t, sub, n)
			t.Logf("%s: %d elements: %v", sub.name, n, after)
			for verb, c := range after {
				if c > time.Second && c > 5*before[verb] {
					t.Errorf("%s of %s: %d elements take %s, %d take %s", verb, sub.name, n/3, before[verb], n, c)
				}
			}
			before = after
		}
	}
	t.Logf("%d lists; %d objects with 1,000 elements were created", measured, accepted)
}

// builtIn returns the lists of the built-in kinds, with elements of each form.
func builtIn(t *testing.T) (out []subject) {
	for _, l := range growth.Lists(t, "../oracle-builtins/testdata/objects.yaml", kinds.Resources()) {
		if !l.Version.Served || l.Resource.Virtual && !l.Resource.Answers("create") {
			continue
		}
		collection := "/apis/" + l.Resource.Group + "/" + l.Version.Name + "/"
		if l.Resource.Group == "" {
			collection = "/api/" + l.Version.Name + "/"
		}
		if l.Resource.Namespaced {
			collection += "namespaces/default/"
		}
		for _, form := range growth.Forms {
			out = append(out, subject{
				name: l.Name + " of " + l.Resource.Kind + ", " + string(form) + " elements", status: l.Version.Status,
				collection: collection + l.Resource.Plural,
				object: func(n int) map[string]any {
					obj := l.Object(n, form)
					obj["metadata"].(map[string]any)["name"] = "growing"
					return obj
				},
				reverse: func(obj map[string]any) { reverse(obj, l.Path()) },
			})
		}
	}
	return out
}

// reverse reverses the list at the end of a path.
func reverse(in any, path []string) {
	switch in := in.(type) {
	case []any:
		if len(path) == 0 {
			slices.Reverse(in)
		}
		for _, e := range in {
			reverse(e, path)
		}
	case map[string]any:
		if len(path) > 0 {
			reverse(in[path[0]], path[1:])
		}
	}
}

// site is a server and a client of it.
type site struct {
	client *http.Client
	url    string
}

func (s site) send(t *testing.T, method, path, media string, body []byte) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", media)
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, string(answer)
}

// costs returns the CPU time of each request for an object with n elements, and whether the object could be created.
func (s site) costs(t *testing.T, sub subject, n int) (out map[string]time.Duration, created bool) {
	t.Helper()
	out = map[string]time.Duration{}
	obj := sub.object(n)
	path := sub.collection + "/growing"
	measure := func(verb, method, path, media string, body any) (code int, answer string) {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		began := usedByProcess(t)
		code, answer = s.send(t, method, path, media, data)
		out[verb] = usedByProcess(t) - began
		return code, answer
	}
	code, text := measure("create", http.MethodPost, sub.collection, "application/json", obj)
	if code != http.StatusCreated {
		return out, false
	}
	var live map[string]any
	if err := json.Unmarshal([]byte(text), &live); err != nil {
		t.Fatal(err)
	}
	delete(live["metadata"].(map[string]any), "resourceVersion")
	backward := runtime.DeepCopyJSON(obj)
	sub.reverse(backward)
	measure("update", http.MethodPut, path, "application/json", live)
	measure("update with the reverse order", http.MethodPut, path, "application/json", backward)
	if sub.status {
		withStatus := runtime.DeepCopyJSON(live)
		if status, ok := obj["status"]; ok {
			withStatus["status"] = status
		}
		measure("update of the status", http.MethodPut, path+"/status", "application/json", withStatus)
		measure("second update of the status", http.MethodPut, path+"/status", "application/json", withStatus)
	}
	label := map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}
	measure("merge patch", http.MethodPatch, path, "application/merge-patch+json", label)
	measure("strategic patch", http.MethodPatch, path, "application/strategic-merge-patch+json", obj)
	measure("strategic patch with the reverse order", http.MethodPatch, path,
		"application/strategic-merge-patch+json", backward)
	apply := path + "?fieldManager=a&force=true"
	measure("apply", http.MethodPatch, apply, "application/apply-patch+yaml", obj)
	measure("second apply", http.MethodPatch, apply, "application/apply-patch+yaml", obj)
	measure("apply with the reverse order", http.MethodPatch, apply, "application/apply-patch+yaml", backward)
	measure("get", http.MethodGet, path, "", map[string]any{})
	now := map[string]any{"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
	code, text = measure("delete", http.MethodDelete, path, "application/json", now)
	if code == http.StatusOK && strings.Contains(text, `"finalizers"`) {
		code, text = s.send(t, http.MethodPatch, path, "application/merge-patch+json",
			[]byte(`{"metadata":{"finalizers":null},"spec":{"finalizers":null}}`))
	}
	if code >= http.StatusMultipleChoices && code != http.StatusNotFound { // a controller has removed a finalizer
		t.Errorf("delete %s with %d elements: %d %s", sub.name, n, code, text[:min(len(text), 1000)])
	}
	return out, true
}

// usedByProcess returns the CPU time of the process.
func usedByProcess(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
