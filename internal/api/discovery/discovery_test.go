package discovery

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

var update = flag.Bool("update", false, "rewrite testdata")

const (
	v2      = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	v2beta1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)

func handler() *Handler {
	return New(Options{
		ServerAddress: "127.0.0.1:6443",
		WriteError: func(w http.ResponseWriter, r *http.Request, err error) {
			status := err.(apierrors.APIStatus).Status()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(int(status.Code))
			json.NewEncoder(w).Encode(status)
		},
	})
}

func namespaces() *catalog.Resource {
	v1 := &catalog.Version{Name: "v1", Served: true, Status: true}
	return &catalog.Resource{
		Plural: "namespaces", Singular: "namespace", Kind: "Namespace", ListKind: "NamespaceList",
		ShortNames: []string{"ns"},
		Versions:   []*catalog.Version{v1}, Storage: v1, Prefix: "namespaces", Served: true,
		Verbs: []string{"watch", "get", "list", "create", "update", "patch", "delete"},
		Subresources: []catalog.Subresource{
			{
				Name: "finalize", Kind: metav1.GroupVersionKind{Kind: "Namespace"}, Verbs: []string{"update"},
				Object: true,
			},
		}, GroupPriority: 18000,
	}
}

func custom(group, plural, kind string) *catalog.Resource {
	v1 := &catalog.Version{
		Name: "v1", Served: true, Status: true, Scale: &catalog.Scale{SpecReplicasPath: ".spec.replicas"},
	}
	beta := &catalog.Version{Name: "v1beta1", Served: true}
	gone := &catalog.Version{Name: "v1alpha1"}
	return &catalog.Resource{
		Group: group, Plural: plural, Singular: plural[:len(plural)-1], Kind: kind, ListKind: kind + "List",
		ShortNames: []string{plural[:2]}, Categories: []string{"all"}, Namespaced: true,
		Versions: []*catalog.Version{v1, beta, gone}, Storage: v1, Prefix: group + "/" + plural, Served: true,
		Definition: catalog.Definition{Name: plural + "." + group, UID: plural, Revision: 7},
	}
}

func get(
	t *testing.T, h *Handler, c *catalog.Catalog, path, accept string, headers ...string,
) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if strings.HasPrefix(accept, codec.CBOR) {
		r = r.WithContext(codec.WithCBOR(r.Context()))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r, c.Snapshot())
	return w
}

func TestPaths(t *testing.T) {
	t.Parallel()
	c := catalog.New(namespaces(), custom("stable.example.com", "crontabs", "CronTab"))
	got := strings.Join(Paths(c.Snapshot()), " ")
	if want := "/api /api/v1 /apis /apis/ /apis/stable.example.com /apis/stable.example.com/v1 /apis/stable.example.com/v1beta1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAnswers(t *testing.T) {
	c := catalog.New(namespaces(), custom("stable.example.com", "crontabs", "CronTab"),
		custom("another.example.com", "widgets", "Widget"))
	for _, test := range []struct {
		name, path, accept string
		code               int
		contentType        string
	}{
		{"api", "/api", "", 200, "application/json"},
		{"api-aggregated", "/api", v2 + "," + v2beta1 + ",application/json", 200, v2},
		{"apis", "/apis/", "*/*", 200, "application/json"},
		{"apis-aggregated", "/apis", v2, 200, v2},
		{"apis-aggregated-beta", "/apis", "application/json;q=0.5," + v2beta1, 200, v2beta1},
		{"apis-plain-preferred", "/apis", v2 + ";q=0.5,application/json", 200, "application/json"},
		{"apis-unknown-conversion", "/apis", "application/json;as=Table;g=meta.k8s.io;v=v1,application/yaml", 200,
			"application/yaml"},
		{"apis-not-acceptable", "/apis", "text/html", 406, "application/json"},
		{"group", "/apis/stable.example.com", "", 200, "application/json"},
		{"group-unknown", "/apis/nope.example.com", "", 404, "application/json"},
		{"group-empty-name", "/apis//v1", "", 404, "application/json"},
		{"core", "/api/v1", "", 200, "application/json"},
		{"core-unknown-version", "/api/v2", "", 404, "application/json"},
		{"core-through-apis", "/apis/v1", "", 404, "application/json"},
		{"version", "/apis/stable.example.com/v1/", "application/json", 200, "application/json"},
		{"version-pretty", "/apis/stable.example.com/v1beta1?pretty=true", "", 200, "application/json"},
		{"version-yaml", "/apis/stable.example.com/v1", "application/yaml", 200, "application/yaml"},
		{"version-unserved", "/apis/stable.example.com/v1alpha1", "", 404, "application/json"},
		{"version-aggregated", "/apis/stable.example.com/v1", v2, 406, "application/json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := get(t, handler(), c, test.path, test.accept)
			if w.Code != test.code || w.Header().Get("Content-Type") != test.contentType {
				t.Errorf("got %d %q, want %d %q", w.Code, w.Header().Get("Content-Type"), test.code, test.contentType)
			}
			golden(t, test.name, w.Body.Bytes())
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// TestEncodingsAgree checks that all encodings of a document agree, and that the fragments concatenate to the encoding
// of the whole.
func TestEncodingsAgree(t *testing.T) {
	c := catalog.New(namespaces(), custom("stable.example.com", "crontabs", "CronTab"),
		custom("another.example.com", "widgets", "Widget"))
	h := handler()
	parameters := ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for path, o := range map[string]interface {
		runtime.Object
		Unmarshal([]byte) error
	}{
		"/api": &metav1.APIVersions{}, "/apis": &metav1.APIGroupList{}, "/apis/stable.example.com": &metav1.APIGroup{},
		"/api/v1": &metav1.APIResourceList{}, "/apis/stable.example.com/v1": &metav1.APIResourceList{},
		"/apis?aggregated": &apidiscoveryv2.APIGroupDiscoveryList{},
		"/api?aggregated":  &apidiscoveryv2.APIGroupDiscoveryList{},
	} {
		suffix := ""
		if _, ok := o.(*apidiscoveryv2.APIGroupDiscoveryList); ok {
			suffix = parameters
		}
		plain := get(t, h, c, path, "application/json"+suffix).Body.Bytes()

		fromYAML, err := yaml.YAMLToJSON(get(t, h, c, path, "application/yaml"+suffix).Body.Bytes())
		if err != nil || canonical(t, fromYAML) != canonical(t, plain) {
			t.Errorf("%s: YAML differs (%v): %s", path, err, fromYAML)
		}
		if path == "/apis/stable.example.com/v1" {
			if code := get(t, h, c, path, codec.CBOR).Code; code != http.StatusNotAcceptable {
				t.Errorf("%s: custom resources in CBOR: status %d", path, code)
			}
		} else {
			inCBOR := get(t, h, c, path, codec.CBOR+suffix)
			var decoded map[string]any
			if body := inCBOR.Body.Bytes(); !codec.TaggedCBOR(body) || codec.UnmarshalCBOR(body, &decoded) != nil ||
				canonical(t, mustJSON(decoded)) != canonical(t, plain) {
				t.Errorf("%s: CBOR differs: %v", path, decoded)
			}
			if got := inCBOR.Header().Get("Content-Type"); !strings.HasPrefix(got, codec.CBOR) {
				t.Errorf("%s: CBOR of type %q", path, got)
			}
		}
		if code := get(t, h, c, path, "text/plain,"+codec.CBOR+suffix).Code; code != http.StatusNotAcceptable {
			t.Errorf("%s: CBOR that is switched off: status %d", path, code)
		}
		wire := get(t, h, c, path, "application/vnd.kubernetes.protobuf"+suffix).Body.Bytes()
		var unknown runtime.Unknown
		if !bytes.HasPrefix(wire, []byte("k8s\x00")) || unknown.Unmarshal(wire[4:]) != nil {
			t.Fatalf("%s: not the envelope of Kubernetes: %q", path, wire)
		}
		if err := o.Unmarshal(unknown.Raw); err != nil {
			t.Fatal(err)
		}
		gvk := unknown.GroupVersionKind()
		o.GetObjectKind().SetGroupVersionKind(gvk)
		if got := canonical(t, mustJSON(o)); got != canonical(t, plain) {
			t.Errorf("%s: protobuf says\n%s\nJSON says\n%s", path, got, plain)
		}
	}
}

// canonical drops values that protobuf cannot distinguish from absence.
func canonical(t *testing.T, doc []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func TestETag(t *testing.T) {
	c := catalog.New(namespaces(), custom("stable.example.com", "crontabs", "CronTab"))
	h := handler()
	first := get(t, h, c, "/apis", v2)
	etag := first.Header().Get("ETag")
	if first.Header().Get("Vary") != "Accept" || first.Header().Get("Cache-Control") != "public" || len(etag) != 130 {
		t.Fatalf("headers: %v", first.Header())
	}
	if w := get(t, h, c, "/apis", v2, "If-None-Match", etag); w.Code != 304 || w.Body.Len() != 0 {
		t.Fatalf("unchanged: got %d %s", w.Code, w.Body)
	}
	if other := get(t, handler(), c, "/apis", v2).Header().Get("ETag"); other != etag {
		t.Errorf("another replica has ETag %s, want %s", other, etag)
	}
	c.Update(1, []*catalog.Resource{custom("stable.example.com", "buckets", "Bucket")}, nil)
	if w := get(t, h, c, "/apis", v2, "If-None-Match", etag); w.Code != 200 || w.Header().Get("ETag") == etag {
		t.Errorf("changed: got %d, ETag %s", w.Code, w.Header().Get("ETag"))
	}
	c.Update(2, nil, []catalog.GroupResource{{Group: "stable.example.com", Resource: "buckets"}})
	if w := get(t, h, c, "/apis", v2, "If-None-Match", etag); w.Code != 304 {
		t.Errorf("changed back: got %d, want 304", w.Code)
	}
}

func TestOnlyChangedGroupsAreBuilt(t *testing.T) {
	c := catalog.New(namespaces(), custom("a.example.com", "crontabs", "CronTab"),
		custom("b.example.com", "crontabs", "CronTab"))
	h := handler()
	before := c.Snapshot()
	get(t, h, c, "/apis", v2)
	kept, stale := h.cache.fragments["a.example.com"], h.cache.fragments["b.example.com"]

	c.Update(1, []*catalog.Resource{custom("b.example.com", "buckets", "Bucket")}, nil)
	get(t, h, c, "/apis", v2)
	if h.cache.fragments["a.example.com"] != kept || h.cache.fragments["b.example.com"] == stale {
		t.Error("want the fragment of b made again and that of a kept")
	}

	newest := h.cache.fragments["b.example.com"]
	r, w := httptest.NewRequest("GET", "/apis", nil), httptest.NewRecorder()
	h.ServeHTTP(w, r, before)
	if h.cache.fragments["b.example.com"] != newest {
		t.Error("a request with an old snapshot replaced a newer fragment")
	}

	c.Update(2, nil, []catalog.GroupResource{{Group: "a.example.com", Resource: "crontabs"}})
	for i := range 3 {
		c.Update(int64(3+i), []*catalog.Resource{custom(fmt.Sprintf("c%d.example.com", i), "crontabs", "CronTab")}, nil)
	}
	for i := range 3 {
		get(t, h, c, "/apis", v2)
		c.Update(int64(6+i), nil,
			[]catalog.GroupResource{{Group: fmt.Sprintf("c%d.example.com", i), Resource: "crontabs"}})
	}
	get(t, h, c, "/api", v2)
	get(t, h, c, "/apis", v2)
	if got := len(h.cache.fragments); got > 3 {
		t.Errorf("%d fragments are kept for 2 groups", got)
	}
}

func TestTerminating(t *testing.T) {
	r := custom("stable.example.com", "crontabs", "CronTab")
	r.Terminating = true
	if got := verbs(r); slices.Contains(got, "create") || slices.Contains(got, "update") ||
		slices.Contains(got, "patch") {
		t.Errorf("verbs of a kind that goes away: %v", got)
	}
}

func TestMethodAndHead(t *testing.T) {
	c := catalog.New(namespaces())
	w := httptest.NewRecorder()
	handler().ServeHTTP(w, httptest.NewRequest("POST", "/apis", nil), c.Snapshot())
	golden(t, "method", w.Body.Bytes())
	w = httptest.NewRecorder()
	handler().ServeHTTP(w, httptest.NewRequest("HEAD", "/apis", nil), c.Snapshot())
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestCompression(t *testing.T) {
	var resources []*catalog.Resource
	for i := range 300 {
		resources = append(resources, custom("stable.example.com", fmt.Sprintf("crontabs%ds", i), "CronTab"))
	}
	c := catalog.New(resources...)
	h := handler()
	plain := get(t, h, c, "/apis", v2)
	packed := get(t, h, c, "/apis", v2, "Accept-Encoding", "deflate, gzip")
	if plain.Header().Get("Content-Encoding") != "" || packed.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("Content-Encoding: %q and %q", plain.Header().Get("Content-Encoding"),
			packed.Header().Get("Content-Encoding"))
	}
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plain.Body.Bytes()) {
		t.Errorf("decompressed differs, %v", err)
	}
}

// BenchmarkReadAfterChange reads everything after one of 2,000 definitions in 200 groups has changed.
func BenchmarkReadAfterChange(b *testing.B) {
	var resources []*catalog.Resource
	for i := range 2000 {
		resources = append(resources,
			custom(fmt.Sprintf("g%d.example.com", i%200), fmt.Sprintf("crontab%ds", i), "CronTab"))
	}
	c := catalog.New(resources...)
	h := handler()
	r := httptest.NewRequest("GET", "/apis", nil)
	r.Header.Set("Accept", v2)
	b.ReportAllocs()
	for i := range b.N {
		c.Update(int64(i), resources[i%2000:i%2000+1], nil)
		w := httptest.NewRecorder()
		w.Body = nil
		h.ServeHTTP(w, r, c.Snapshot())
	}
}
