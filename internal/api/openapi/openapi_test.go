package openapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

var update = flag.Bool("update", false, "rewrite testdata")

func handler() *Handler {
	return New(Options{Version: "v1.36.3", WriteError: func(w http.ResponseWriter, _ *http.Request, err error) {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Status().Code))
		json.NewEncoder(w).Encode(status.Status())
	}})
}

func source(t testing.TB) func() (*apiextensionsv1.JSONSchemaProps, error) {
	t.Helper()
	raw, err := os.ReadFile("testdata/schema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return func() (*apiextensionsv1.JSONSchemaProps, error) {
		props := &apiextensionsv1.JSONSchemaProps{}
		return props, yaml.Unmarshal(raw, props)
	}
}

func crontabs(t testing.TB, group string, revision int64) *catalog.Resource {
	v1 := &catalog.Version{
		Name: "v1", Served: true, Status: true, Scale: &catalog.Scale{SpecReplicasPath: ".spec.replicas"},
		Source: source(t),
	}
	beta := &catalog.Version{Name: "v1beta1", Served: true}
	return &catalog.Resource{
		Group: group, Plural: "crontabs", Singular: "crontab", Kind: "CronTab", ListKind: "CronTabList",
		Namespaced: true,
		Versions:   []*catalog.Version{v1, beta}, Storage: v1, Prefix: group + "/crontabs", Served: true,
		Definition: catalog.Definition{Name: "crontabs." + group, UID: "0", Revision: revision},
	}
}

func namespaces(t testing.TB) *catalog.Resource {
	v1 := &catalog.Version{Name: "v1", Served: true, Status: true, Source: source(t)}
	return &catalog.Resource{
		Plural: "namespaces", Singular: "namespace", Kind: "Namespace", ListKind: "NamespaceList",
		Versions: []*catalog.Version{v1}, Storage: v1, Prefix: "namespaces", Served: true,
		Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
		Subresources: []catalog.Subresource{
			{
				Name: "finalize", Kind: metav1.GroupVersionKind{Kind: "Namespace"}, Verbs: []string{"update"},
				Object: true,
			},
		},
	}
}

func get(t testing.TB, h *Handler, c *catalog.Catalog, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r, c.Snapshot())
	return w
}

func parse(t testing.TB, body []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v: %.300s", err, body)
	}
	return v
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

func TestIndex(t *testing.T) {
	c := catalog.New(namespaces(t), crontabs(t, "stable.example.com", 1), crontabs(t, "other.example.com", 1))
	h := handler()
	w := get(t, h, c, "/openapi/v3")
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("got %d %v", w.Code, w.Header())
	}
	urls := urlsOf(t, w)
	want := []string{".well-known/openid-configuration", "api", "api/v1", "apis", "apis/other.example.com/v1",
		"apis/other.example.com/v1beta1", "apis/stable.example.com/v1", "apis/stable.example.com/v1beta1",
		"openid/v1/jwks", "version"}
	if got := slices.Sorted(maps.Keys(urls)); !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if h.cache.size != 0 {
		t.Error("the index built documents")
	}
	for _, url := range urls {
		w := get(t, h, c, url)
		if w.Code != 200 || w.Header().Get("Cache-Control") != "public, immutable" || w.Header().Get("Expires") == "" ||
			parse(t, w.Body.Bytes())["openapi"] != "3.0.0" {
			t.Errorf("%s: got %d %v", url, w.Code, w.Header())
		}
	}
	if again := urlsOf(t, get(t, handler(), c, "/openapi/v3/")); !maps.Equal(again, urls) {
		t.Error("another replica has other hashes")
	}
	etag := w.Header().Get("ETag")
	if w := get(t, h, c, "/openapi/v3", "If-None-Match", etag); w.Code != 304 || w.Body.Len() > 0 {
		t.Errorf("unchanged index: got %d", w.Code)
	}

	c.Update(2, []*catalog.Resource{crontabs(t, "stable.example.com", 2)},
		[]catalog.GroupResource{{Group: "other.example.com", Resource: "crontabs"}})
	changed := urlsOf(t, get(t, h, c, "/openapi/v3", "If-None-Match", etag))
	if changed["api/v1"] != urls["api/v1"] ||
		changed["apis/stable.example.com/v1"] == urls["apis/stable.example.com/v1"] ||
		len(changed) != 3+len(generalPaths()) {
		t.Errorf("after a change of one group: %v", changed)
	}
	if _, ok := h.hashes.groups["other.example.com"]; ok {
		t.Error("the hash of a group that is gone is kept")
	}
	old := get(t, h, c, urls["apis/stable.example.com/v1"])
	if old.Code != 301 || old.Header().Get("Location") != changed["apis/stable.example.com/v1"] {
		t.Errorf("an old hash: got %d to %q", old.Code, old.Header().Get("Location"))
	}
}

func urlsOf(t *testing.T, w *httptest.ResponseRecorder) map[string]string {
	t.Helper()
	out := map[string]string{}
	for path, item := range parse(t, w.Body.Bytes())["paths"].(map[string]any) {
		out[path] = item.(map[string]any)["serverRelativeURL"].(string)
	}
	return out
}

// TestHashOfBuiltinKind checks that a change of a built-in schema changes the hash, although no revision changes.
func TestHashOfBuiltinKind(t *testing.T) {
	r := namespaces(t)
	before := urlsOf(t, get(t, handler(), catalog.New(r), "/openapi/v3"))
	other := namespaces(t)
	other.Versions[0].Source = func() (*apiextensionsv1.JSONSchemaProps, error) {
		return &apiextensionsv1.JSONSchemaProps{Type: "object"}, nil
	}
	if after := urlsOf(t, get(t, handler(), catalog.New(other), "/openapi/v3")); after["api/v1"] == before["api/v1"] {
		t.Error("another schema has the same hash")
	}
}

func TestRefusals(t *testing.T) {
	c := catalog.New(namespaces(t), crontabs(t, "stable.example.com", 1))
	for _, test := range []struct {
		path, accept string
		code         int
	}{
		{"/openapi/v3/apis/nope.example.com/v1", "", 404},
		{"/openapi/v3/apis/stable.example.com/v2", "", 404},
		{"/openapi/v3/apis/stable.example.com", "", 404},
		{"/openapi/v3/apis//v1", "", 404},
		{"/openapi/v3/api/v1/more", "", 404},
		{"/openapi/v4", "", 404},
		{"/openapi/v3/api/v1", "text/html", 406},
		{"/openapi/v2", "application/yaml", 406},
	} {
		w := get(t, handler(), c, test.path, "Accept", test.accept)
		if w.Code != test.code || parse(t, w.Body.Bytes())["status"] != "Failure" {
			t.Errorf("%s as %q: got %d %s, want %d", test.path, test.accept, w.Code, w.Body, test.code)
		}
	}
	w := httptest.NewRecorder()
	handler().ServeHTTP(w, httptest.NewRequest("POST", "/openapi/v3", nil), c.Snapshot())
	if w.Code != 405 {
		t.Errorf("POST: got %d", w.Code)
	}
}

// TestProtobuf checks that the protobuf forms agree with the JSON forms.
func TestProtobuf(t *testing.T) {
	c := catalog.New(namespaces(t), crontabs(t, "stable.example.com", 1), crontabs(t, "other.example.com", 1))
	h := handler()
	for _, accept := range []string{"application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
		"application/com.github.proto-openapi.spec.v3.v1.0+protobuf"} {
		w := get(t, h, c, "/openapi/v3/apis/stable.example.com/v1", "Accept", accept)
		if w.Header().Get("Content-Type") != "application/com.github.proto-openapi.spec.v3.v1.0+protobuf" {
			t.Errorf("Content-Type %q", w.Header().Get("Content-Type"))
		}
		got := &openapi_v3.Document{}
		if err := proto.Unmarshal(w.Body.Bytes(), got); err != nil {
			t.Fatal(err)
		}
		want, err := openapi_v3.ParseDocument(get(t, h, c, "/openapi/v3/apis/stable.example.com/v1").Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, want) {
			t.Error("v3 differs")
		}
	}

	sameV2(t, c)
}

func TestProtobufOfRealDefinitions(t *testing.T) { sameV2(t, real(t, "*_*routes.yaml")) }

// sameV2 compares the v2 document in protobuf with gnostic's conversion of the JSON form.
func sameV2(t *testing.T, c *catalog.Catalog) {
	t.Helper()
	h := handler()
	got := &openapi_v2.Document{}
	if err := proto.Unmarshal(get(t, h, c, "/openapi/v2", "Accept",
		"application/com.github.proto-openapi.spec.v2@v1.0+protobuf").Body.Bytes(), got); err != nil {
		t.Fatal(err)
	}
	want, err := openapi_v2.ParseDocument(get(t, h, c, "/openapi/v2").Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	// members of objects have no order, and loose values are YAML
	for _, doc := range []*openapi_v2.Document{got, want} {
		normalize(t, doc.ProtoReflect())
		slices.SortFunc(doc.Paths.Path,
			func(a, b *openapi_v2.NamedPathItem) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(doc.Definitions.AdditionalProperties,
			func(a, b *openapi_v2.NamedSchema) int { return strings.Compare(a.Name, b.Name) })
	}
	if !proto.Equal(got, want) {
		t.Error("v2 differs")
	}
}

// normalize rewrites the loose values in m as JSON.
func normalize(t *testing.T, m protoreflect.Message) {
	t.Helper()
	if loose, ok := m.Interface().(*openapi_v2.Any); ok {
		b, err := yaml.YAMLToJSON([]byte(loose.Yaml))
		if err != nil {
			t.Fatal(err)
		}
		loose.Yaml = string(b)
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Kind() != protoreflect.MessageKind:
		case field.IsList():
			for i := range v.List().Len() {
				normalize(t, v.List().Get(i).Message())
			}
		default:
			normalize(t, v.Message())
		}
		return true
	})
}

func TestGzipAndHead(t *testing.T) {
	c := catalog.New(namespaces(t), crontabs(t, "stable.example.com", 1))
	h := handler()
	for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/stable.example.com/v1"} {
		plain := get(t, h, c, path)
		packed := get(t, h, c, path, "Accept-Encoding", "gzip")
		if plain.Header().Get("Content-Encoding") != "" || packed.Header().Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: Content-Encoding %q and %q", path, plain.Header().Get("Content-Encoding"),
				packed.Header().Get("Content-Encoding"))
		}
		z, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plain.Body.Bytes()) {
			t.Errorf("%s: decompressed differs, %v", path, err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("HEAD", path, nil), c.Snapshot())
		if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("ETag") != plain.Header().Get("ETag") {
			t.Errorf("HEAD %s: %d %v", path, w.Code, w.Header())
		}
		if w := get(t, h, c, path, "If-None-Match", plain.Header().Get("ETag")); w.Code != 304 || w.Body.Len() != 0 {
			t.Errorf("%s unchanged: %d", path, w.Code)
		}
	}
}

// Every reference of a document leads to a definition in it.
func TestNoDanglingReferences(t *testing.T) {
	c := catalog.New(namespaces(t), crontabs(t, "stable.example.com", 1))
	for path, at := range map[string][]string{
		"/openapi/v2": {"definitions"}, "/openapi/v3/api/v1": {"components", "schemas"},
		"/openapi/v3/apis/stable.example.com/v1": {"components", "schemas"},
	} {
		body := get(t, handler(), c, path).Body.Bytes()
		doc := parse(t, body)
		definitions := doc
		for _, name := range at {
			definitions = definitions[name].(map[string]any)
		}
		prefix := `"$ref":"#/` + strings.Join(at, "/") + "/"
		refs := strings.Split(string(body), prefix)[1:]
		if len(refs) < 10 {
			t.Errorf("%s: %d references", path, len(refs))
		}
		for _, ref := range refs {
			name, _, _ := strings.Cut(ref, `"`)
			if _, ok := definitions[name]; !ok {
				t.Errorf("%s: no definition of %s", path, name)
			}
		}
	}
}

func TestPathsFollowVerbs(t *testing.T) {
	doc := parse(t, get(t, handler(), catalog.New(namespaces(t)), "/openapi/v3/api/v1").Body.Bytes())
	var got []string
	for path, item := range doc["paths"].(map[string]any) {
		for _, method := range slices.Sorted(maps.Keys(item.(map[string]any))) {
			if method != "parameters" {
				got = append(got, method+" "+path+" "+
					item.(map[string]any)[method].(map[string]any)["operationId"].(string))
			}
		}
	}
	slices.Sort(got)
	golden(t, "namespaces.paths", []byte(strings.Join(got, "\n")+"\n"))
}

func TestBrokenSchema(t *testing.T) {
	r := crontabs(t, "stable.example.com", 1)
	r.Versions[0].Source = func() (*apiextensionsv1.JSONSchemaProps, error) { return nil, errors.New("broken") }
	h, c := handler(), catalog.New(r)
	w := get(t, h, c, urlsOf(t, get(t, h, c, "/openapi/v3"))["apis/stable.example.com/v1"])
	if w.Code != 500 || w.Header().Get("ETag") != "" || w.Header().Get("Cache-Control") != "" ||
		!strings.Contains(w.Body.String(), "schema of crontabs.stable.example.com in version v1: broken") {
		t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
	}
	defer func() {
		if recover() != http.ErrAbortHandler {
			t.Error("an incomplete v2 document ends as if it were complete")
		}
	}()
	get(t, handler(), catalog.New(r), "/openapi/v2")
}

func TestDocumentCache(t *testing.T) {
	c := &documentCache{limit: 100}
	v3 := func(name, hash string) key { return key{"v3 " + name, formJSON, hash} }
	has := func(k key) bool { return c.get(k) != nil }
	for i := range 10 {
		c.put(v3(fmt.Sprint(i), "a"), make([]byte, 30), false)
	}
	if c.size != 90 || !has(v3("9", "a")) || has(v3("6", "a")) {
		t.Errorf("size %d, want the last three", c.size)
	}
	has(v3("7", "a"))
	c.put(v3("x", "a"), make([]byte, 20), false)
	if !has(v3("7", "a")) || has(v3("8", "a")) {
		t.Error("want the least recently used evicted")
	}
	c.put(v3("x", "b"), make([]byte, 20), false)
	if has(v3("x", "a")) || !has(v3("x", "b")) {
		t.Error("want the document of the new hash instead of the old one's")
	}
	c.put(v3("z", "a"), make([]byte, 60), false)
	if has(v3("z", "a")) {
		t.Error("want no document that takes more than half")
	}
	for _, form := range []string{formJSON, formProtobuf} {
		for i := range 5 {
			c.put(key{fmt.Sprint("v2 ", i), form, "a"}, make([]byte, 30), true)
		}
		for i := range 5 {
			if got, want := has(key{fmt.Sprint("v2 ", i), form, "a"}), i < 3; got != want {
				t.Errorf("part %d of a scan in %s: kept %v", i, form, got)
			}
		}
	}
	c.drop()
	if c.size != 0 || has(key{"v2 0", formProtobuf, "a"}) {
		t.Error("want nothing after drop")
	}
	c.put(v3("0", "a"), make([]byte, 30), false)
	if !has(v3("0", "a")) {
		t.Error("want it to work after drop")
	}
}
