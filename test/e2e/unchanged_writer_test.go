package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// writer sends requests to one server.
type writer struct {
	http      *http.Client
	url       string
	resources map[string][]map[string]any // by apiVersion
}

func (w *writer) do(t *testing.T, method, path, media string, body any) (int, map[string]any) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, w.url+path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	resp, err := w.http.Do(req)
	if err != nil && t.Context().Err() == nil { // kube-apiserver panics at some writes of Jobs
		return http.StatusInternalServerError, map[string]any{"message": err.Error()}
	} else if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %d: %v", method, path, resp.StatusCode, err)
	}
	var out map[string]any
	if err := json.Unmarshal(answer, &out); err != nil {
		out = map[string]any{"message": string(answer)} // kube-apiserver's, of a path that it does not serve
	}
	return resp.StatusCode, out
}

// await waits until the server serves a collection; kube-apiserver does so some time after the definition's creation.
func (w *writer) await(t *testing.T, collection string) {
	t.Helper()
	ctx, tick := bounded(t, startLimit), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		if code, _ := w.do(t, http.MethodGet, collection, "", nil); code != http.StatusNotFound {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s%s is not served", w.url, collection)
		}
	}
}

// newWriter returns the writer of a server.
func newWriter(t *testing.T, p *process) *writer {
	t.Helper()
	config := p.config(t)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &writer{http: client, url: config.Host, resources: map[string][]map[string]any{}}
}

// collection returns the path of the collection of an object, with NAMESPACE for the namespace, or "" if its kind is
// not served.
func (w *writer) collection(t *testing.T, obj map[string]any) (path string, namespaced bool) {
	t.Helper()
	version, kind := fmt.Sprint(obj["apiVersion"]), obj["kind"]
	base := "/apis/" + version
	if version == "v1" {
		base = "/api/v1"
	}
	if len(w.resources[version]) == 0 {
		if code, list := w.do(t, http.MethodGet, base, "", nil); code == http.StatusOK {
			for _, r := range list["resources"].([]any) {
				w.resources[version] = append(w.resources[version], r.(map[string]any))
			}
		}
	}
	for _, r := range w.resources[version] {
		name := fmt.Sprint(r["name"])
		switch {
		case r["kind"] != kind || bytes.ContainsRune([]byte(name), '/'):
		case r["namespaced"] == true:
			return base + "/namespaces/NAMESPACE/" + name, true
		default:
			return base + "/" + name, false
		}
	}
	return "", false
}

// shapes returns the definitions of the server's OpenAPI document by name, and their names by apiVersion and kind.
func (w *writer) shapes(t *testing.T) (definitions map[string]any, names map[string]string) {
	t.Helper()
	_, document := w.do(t, http.MethodGet, "/openapi/v2", "", nil)
	definitions, names = document["definitions"].(map[string]any), map[string]string{}
	for name, d := range definitions {
		kinds, _ := d.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			k := k.(map[string]any)
			version := fmt.Sprint(k["version"])
			if k["group"] != "" {
				version = fmt.Sprint(k["group"], "/", version)
			}
			names[fmt.Sprint(version, " ", k["kind"])] = name
		}
	}
	return definitions, names
}
