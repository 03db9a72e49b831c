package bodies

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	direct "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	cborType     = "application/cbor"
)

var metaScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddMetaToScheme(s)
	metav1beta1.AddMetaToScheme(s)
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	apiextensionsv1.AddToScheme(s)
	return s
}()

// caller sends plain HTTP requests.
type caller struct {
	t      testing.TB
	http   *http.Client
	server string
}

func newCaller(t testing.TB, config *rest.Config) *caller {
	t.Helper()
	config = rest.CopyConfig(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &caller{t: t, http: client, server: config.Host}
}

type answer struct {
	code        int
	contentType string
	body        []byte
}

func (c *caller) do(method, path, accept, contentType string, body []byte) answer {
	c.t.Helper()
	r := c.request(method, path, accept, contentType, body)
	res, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header.Get("Content-Type"), raw}
}

func (c *caller) request(method, path, accept, contentType string, body []byte) *http.Request {
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.server+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

// value decodes a document of any form with Kubernetes' serializers into plain JSON values.
func value(t testing.TB, contentType string, doc []byte) map[string]any {
	t.Helper()
	var asJSON []byte
	var err error
	switch contentType {
	case "application/json":
		asJSON = doc
	case "application/yaml":
		asJSON, err = yaml.YAMLToJSON(doc)
	case cborType:
		if !bytes.HasPrefix(doc, []byte("\xd9\xd9\xf7")) {
			t.Fatalf("CBOR without its tag: %x", doc[:min(len(doc), 10)])
		}
		var v map[string]any
		if err := direct.Unmarshal(doc, &v); err != nil {
			t.Fatalf("CBOR: %v", err)
		}
		asJSON, err = json.Marshal(v)
	case protobufType:
		asJSON, err = json.Marshal(fromProtobuf(t, doc))
	default:
		t.Fatalf("Content-Type %q", contentType)
	}
	if err != nil {
		t.Fatalf("%s: %v", contentType, err)
	}
	var v map[string]any
	if err := json.Unmarshal(asJSON, &v); err != nil {
		t.Fatalf("%s: %v\n%s", contentType, err, asJSON)
	}
	return v
}

func fromProtobuf(t testing.TB, doc []byte) runtime.Object {
	t.Helper()
	for _, s := range []*runtime.Scheme{metaScheme, scheme.Scheme} {
		obj, kind, err := protobuf.NewSerializer(s, s).Decode(doc, nil, nil)
		if runtime.IsNotRegisteredError(err) {
			continue
		}
		if err != nil {
			t.Fatalf("protobuf: %v", err)
		}
		obj.GetObjectKind().SetGroupVersionKind(*kind)
		return obj
	}
	t.Fatalf("no type knows %q", doc[:min(len(doc), 60)])
	return nil
}

// typed brings a JSON value of a built-in kind into the form after a trip through its Go type, so that nulls and absent
// fields compare.
func typed(t testing.TB, v map[string]any) map[string]any {
	t.Helper()
	gvk := schema.FromAPIVersionAndKind(v["apiVersion"].(string), v["kind"].(string))
	obj, err := scheme.Scheme.New(gvk)
	if err != nil {
		if obj, err = metaScheme.New(gvk); err != nil {
			return v
		}
	}
	raw, _ := json.Marshal(v)
	if err := json.Unmarshal(raw, obj); err != nil {
		t.Fatal(err)
	}
	raw, _ = json.Marshal(obj)
	var out map[string]any
	_ = json.Unmarshal(raw, &out)
	for _, item := range items(out) { // messages inside a list have no kind
		delete(item, "kind")
		delete(item, "apiVersion")
	}
	return out
}

func items(list map[string]any) (items []map[string]any) {
	all, _ := list["items"].([]any)
	for _, item := range all {
		items = append(items, item.(map[string]any))
	}
	return items
}

const widgets = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,
"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`

const (
	widgetPath = "/apis/example.com/v1/namespaces/default/widgets"
	configPath = "/api/v1/namespaces/default/configmaps"
)

// start returns a server with a few objects of a custom and a built-in kind, with CBOR on or off.
func start(t testing.TB, withCBOR bool) (*testserver.Server, *caller) {
	s := testserver.Start(t, func(c *bowsprit.Config) { c.API.CBOR = withCBOR })
	c := newCaller(t, s.RESTConfig())
	post := func(path, body string) {
		if a := c.do("POST", path, "application/json", "application/json", []byte(body)); a.code != 201 {
			t.Fatalf("%s: %d %s", path, a.code, a.body)
		}
	}
	post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets)
	for i := range 3 {
		post(widgetPath,
			fmt.Sprintf(
				`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w%d","labels":{"a":"b"}},"spec":{"replicas":%d,"x":1.5,"list":[1,"a",null,{"b":true}],"big":9007199254740993}}`, i, i))
		post(configPath,
			fmt.Sprintf(
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d"},"data":{"k":"v%d"},"binaryData":{"b":"AAEC"}}`, i, i))
	}
	return s, c
}

func TestEveryFormHoldsTheSame(t *testing.T) {
	t.Parallel()
	_, c := start(t, true)
	for _, path := range []string{widgetPath, widgetPath + "/w1", widgetPath + "/w1/scale", widgetPath + "?limit=2",
		configPath, configPath + "/c1", configPath + "?limit=2",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com", "/api/v1/namespaces",
		"/api/v1/namespaces/none", widgetPath + "/none", widgetPath + "?fieldSelector=metadata.name%3Dnone"} {
		custom := strings.HasPrefix(path, widgetPath) && !strings.HasSuffix(path, "/scale")
		single := strings.Count(path, "/") > 4 && !strings.HasSuffix(path, "s") && !strings.Contains(path, "?")
		transforms := []string{"", ";as=Table;g=meta.k8s.io;v=v1", ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
			";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1"}
		if strings.HasSuffix(path, "/scale") || strings.HasSuffix(path, "none") {
			transforms = transforms[:1]
		}
		for _, transform := range transforms {
			base := c.do("GET", path, "application/json"+transform, "", nil)
			if list := strings.Contains(transform, "List"); base.code == 406 &&
				strings.Contains(string(base.body), "you requested") &&
				(list == single || strings.Contains(transform, "Metadata;")) {
				continue
			}
			want := value(t, base.contentType, base.body)
			for _, form := range []string{"application/yaml", protobufType, cborType} {
				a := c.do("GET", path, form+transform, "", nil)
				name := path + " as " + form + transform
				if form == protobufType && custom && transform == "" || strings.Contains(transform, "Table") &&
					form != "application/yaml" {
					if a.code != 406 {
						t.Errorf("%s: %d, want 406", name, a.code)
					}
					continue
				}
				if base.code == 500 { // kube's response for one object as a list of metadata; its Status is in JSON
					continue
				}
				if a.code != base.code || a.contentType != form {
					t.Errorf("%s: %d %s, JSON has %d", name, a.code, a.contentType, base.code)
					continue
				}
				got, want := value(t, a.contentType, a.body), want
				if form == protobufType {
					got, want = typed(t, got), typed(t, want)
				}
				dropMoving(t, got)
				dropMoving(t, want)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s:\n%v\nJSON has\n%v", name, got, want)
				}
			}
		}
	}
}

// dropMoving removes the fields that differ from request to request: a token, which each request makes, and the
// resourceVersion of a list, which grows with the writes of the controllers.
func dropMoving(t *testing.T, v map[string]any) {
	meta, _ := v["metadata"].(map[string]any)
	delete(meta, "continue")
	if v["items"] == nil && v["rows"] == nil {
		return
	}
	if version, _ := meta["resourceVersion"].(string); version == "" {
		t.Errorf("a list has no resourceVersion: %v", v)
	}
	meta["resourceVersion"] = "some"
}

// TestBinaryListIsOneOfKube compares a list's protobuf bytes with the bytes of Kubernetes' serializer.
func TestBinaryListIsOneOfKube(t *testing.T) {
	t.Parallel()
	_, c := start(t, false)
	for _, path := range []string{configPath, configPath + "/c1"} {
		a := c.do("GET", path, protobufType, "", nil)
		var again bytes.Buffer
		if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(fromProtobuf(t, a.body),
			&again); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.body, again.Bytes()) {
			t.Errorf("%s:\n%q\nkube writes\n%q", path, a.body, again.Bytes())
		}
	}
}

func TestCompressedBinaryList(t *testing.T) {
	t.Parallel()
	_, c := start(t, true)
	text := strings.Repeat("0123456789", 20000)
	body, _ := json.Marshal(&corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "large"},
		Data: map[string]string{"k": text},
	})
	if a := c.do("POST", configPath, "", "application/json", body); a.code != 201 {
		t.Fatalf("%s", a.body)
	}
	for _, form := range []string{protobufType, cborType, "application/yaml"} {
		for _, path := range []string{configPath, configPath + "/large"} {
			r := c.request("GET", path, form, "", nil)
			r.Header.Set("Accept-Encoding", "gzip")
			res, err := c.http.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			var in io.Reader = res.Body
			if res.Header.Get("Content-Encoding") == "gzip" { // not for clients on the same machine
				if in, err = gzip.NewReader(res.Body); err != nil {
					t.Fatal(err)
				}
			}
			raw, err := io.ReadAll(in)
			res.Body.Close()
			if err != nil || !strings.Contains(fmt.Sprint(value(t, form, raw)), text) {
				t.Errorf("%s as %s: %v, %d bytes", path, form, err, len(raw))
			}
		}
	}
}

// TestWatchInEveryForm follows the same changes in each form.
func TestWatchInEveryForm(t *testing.T) {
	t.Parallel()
	_, c := start(t, true)
	for _, kind := range []struct{ path, name string }{{widgetPath, "w1"}, {configPath, "c1"}} {
		for _, form := range []string{"application/json", protobufType, cborType} {
			for _, transform := range []string{"", ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"} {
				if kind.path == widgetPath && form == protobufType && transform == "" {
					continue
				}
				t.Run(kind.name+" "+form+transform,
					func(t *testing.T) { watchForm(t, c, kind.path, kind.name, form, transform) })
			}
		}
	}
	if a := c.do("GET", configPath+"?watch=1", "application/yaml", "", nil); a.code != 406 ||
		!strings.HasSuffix(value(t, a.contentType, a.body)["message"].(string),
			"application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq") {
		t.Errorf("YAML: %d %s", a.code, a.body)
	}
}

func watchForm(t *testing.T, c *caller, path, name, form, transform string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := c.request("GET", path+
		"?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", form+
		";stream=watch"+transform, "", nil)
	if form == cborType {
		r.Header.Set("Accept", form+transform)
	}
	res, err := c.http.Do(r.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	decoder := c.streamDecoder(t, form, res)
	next := func() (string, map[string]any) {
		var ev metav1.WatchEvent
		if _, _, err := decoder.Decode(nil, &ev); err != nil {
			t.Fatalf("next event: %v", err)
		}
		return ev.Type, value(t, form, ev.Object.Raw)
	}
	seen := map[string]any{}
	for {
		typ, obj := next()
		meta := obj["metadata"].(map[string]any)
		if typ == "BOOKMARK" {
			if meta["annotations"].(map[string]any)["k8s.io/initial-events-end"] != "true" {
				t.Errorf("bookmark %v", obj)
			}
			break
		}
		if typ != "ADDED" {
			t.Errorf("%s %v", typ, obj)
		}
		seen[meta["name"].(string)] = obj
	}
	plain := c.do("GET", path+"/"+name, "application/json"+transform, "", nil)
	got, want := seen[name].(map[string]any), value(t, plain.contentType, plain.body)
	if form == protobufType {
		got, want = typed(t, got), typed(t, want)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("added:\n%v\nget has\n%v", got, want)
	}
	a := c.do("PATCH", path+"/"+name, "", "application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"n":"`+form+transform+`"}}}`))
	if a.code != 200 {
		t.Fatalf("%s", a.body)
	}
	typ, obj := next()
	if typ != "MODIFIED" || obj["metadata"].(map[string]any)["annotations"].(map[string]any)["n"] != form+transform {
		t.Errorf("%s %v", typ, obj)
	}
}

// streamDecoder reads watch events with the framer and decoder that client-go has for the form.
func (c *caller) streamDecoder(t *testing.T, form string, res *http.Response) streaming.Decoder {
	t.Helper()
	want := map[string]string{
		"application/json": "application/json", protobufType: protobufType + ";stream=watch",
		cborType: "application/cbor-seq",
	}[form]
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != want {
		t.Fatalf("%d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	codecs := serializer.NewCodecFactory(metaScheme, serializer.WithSerializer(cbor.NewSerializerInfo))
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), form)
	if !ok {
		t.Fatal(form)
	}
	return streaming.NewDecoder(info.StreamSerializer.NewFrameReader(res.Body), info.StreamSerializer.Serializer)
}

// TestWatchErrorInEveryForm watches from an expired revision.
func TestWatchErrorInEveryForm(t *testing.T) {
	t.Parallel()
	_, c := start(t, true)
	for _, form := range []string{"application/json", protobufType, cborType} {
		res, err := c.http.Do(c.request("GET", configPath+"?watch=1&resourceVersion=1", form, "", nil))
		if err != nil {
			t.Fatal(err)
		}
		var ev metav1.WatchEvent
		_, _, err = c.streamDecoder(t, form, res).Decode(nil, &ev)
		res.Body.Close()
		if err != nil || ev.Type != "ERROR" && ev.Type != "ADDED" {
			t.Errorf("%s: %v, %+v", form, err, ev)
			continue
		}
		if status := value(t, form, ev.Object.Raw); ev.Type == "ERROR" &&
			(status["kind"] != "Status" || status["reason"] != "Expired") {
			t.Errorf("%s: %v", form, status)
		}
	}
}

// TestBodiesInEveryForm sends the same object in each form, with all verbs that have a body.
func TestBodiesInEveryForm(t *testing.T) {
	t.Parallel()
	_, c := start(t, true)
	config := func(name, v string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			Data: map[string]string{"k": v},
		}
	}
	encode := func(form string, obj runtime.Object) []byte {
		switch form {
		case protobufType:
			var b bytes.Buffer
			if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &b); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		case cborType:
			raw, err := direct.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		raw, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		if form == "application/yaml" {
			raw, _ = yaml.JSONToYAML(raw)
		}
		return raw
	}
	for i, form := range []string{"application/json", "application/yaml", protobufType, cborType} {
		name := fmt.Sprintf("body%d", i)
		step := func(method, path, contentType string, body []byte, code int, data any) {
			t.Helper()
			a := c.do(method, path, form, contentType, body)
			if a.code != code || a.contentType != form {
				t.Errorf("%s %s: %d %s %s", form, method, a.code, a.contentType, a.body)
				return
			}
			if v := value(t, form, a.body); data != nil && !reflect.DeepEqual(v["data"], data) {
				t.Errorf("%s %s: %v", form, method, v)
			}
		}
		step("POST", configPath, form, encode(form, config(name, "1")), 201, map[string]any{"k": "1"})
		step("PUT", configPath+"/"+name, form, encode(form, config(name, "2")), 200, map[string]any{"k": "2"})
		if form == cborType {
			apply, _ := direct.Marshal(map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
				"data": map[string]any{"l": "3"},
			})
			step("PATCH", configPath+"/"+name+"?fieldManager=m", "application/apply-patch+cbor", apply, 200,
				map[string]any{"k": "2", "l": "3"})
			step("PATCH", configPath+"/"+name+"?fieldManager=m", "application/apply-patch+cbor", []byte("\xff"), 400,
				nil)
		}
		wrongUID := metav1.NewUIDPreconditions("other")
		options := &metav1.DeleteOptions{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: wrongUID,
		}
		step("DELETE", configPath+"/"+name, form, encode(form, options), 409, nil)
		step("DELETE", configPath+"/"+name, form, encode(form, &metav1.DeleteOptions{TypeMeta: options.TypeMeta}), 200,
			nil)
	}
}

// TestCBORIsOffByDefault checks the responses to clients of Kubernetes 1.36 that prefer CBOR.
func TestCBORIsOffByDefault(t *testing.T) {
	t.Parallel()
	_, c := start(t, false)
	if a := c.do("GET", widgetPath, cborType, "", nil); a.code != 406 {
		t.Errorf("Accept: %d", a.code)
	}
	if a := c.do("GET", widgetPath, cborType+";q=1,application/json;q=0.9", "", nil); a.code != 200 ||
		a.contentType != "application/json" {
		t.Errorf("Accept with a second choice: %d %s", a.code, a.contentType)
	}
	body, _ := direct.Marshal(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "x"},
	})
	if a := c.do("POST", widgetPath, "application/json", cborType, body); a.code != 415 ||
		strings.Contains(string(a.body), cborType) {
		t.Errorf("body: %d %s", a.code, a.body)
	}
	if a := c.do("PATCH", widgetPath+"/x?fieldManager=m", "application/json", "application/apply-patch+cbor",
		body); a.code != 415 {
		t.Errorf("apply: %d %s", a.code, a.body)
	}
}
