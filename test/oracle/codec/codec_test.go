package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

var thing = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}

type creater struct{}

func (creater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// typer takes the kinds of unstructured objects from their fields.
type typer struct{}

func (typer) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{obj.GetObjectKind().GroupVersionKind()}, false, nil
}

func (typer) Recognizes(schema.GroupVersionKind) bool { return true }

func theirSerializer(yaml, strict bool) runtime.Serializer {
	return serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, creater{}, typer{},
		serializer.SerializerOptions{Yaml: yaml, Strict: strict})
}

// bodies are seeds; FuzzDecodeObject makes more of them.
var bodies = []string{
	``, `{}`, `null`, `[]`, `1`, `{"kind":"Thing"}`, `{"apiVersion":"example.com/v1"}`,
	`{"apiVersion":"example.com/v1","kind":"Thing","a":{"b":1,"b":2}}`,
	`{"apiVersion":"example.com/v1","kind":"Thing","kind":"Other"}`, `{"apiVersion":1,"kind":"Thing"}`,
	`{"kind":null,"apiVersion":null}`, `{"Kind":1,"kind":"Thing","apiVersion":"example.com/v1"}`,
	`{"KIND":"Upper","apiVersion":"example.com/v1"}`, `{"kind":"Thing","apiVersion":"a/b/c"}`,
	`{"kind":"","apiVersion":"example.com/v1"}`, `{"kind":5,"kind":"Thing","apiVersion":"example.com/v1"}`,
	`{"apiVersion":"example.com/v1","kind":"Thing","n":1e999}`, `{"apiVersion":"v1","kind":"Thing"}`,
	`{"apiVersion":"/","kind":"A"}`, ` {"apiVersion":"other.com/v1"} `,
	`{"apiVersion":"example.com/v1","kind":"Thing"} trailing`,
	"apiVersion: example.com/v1\nkind: Thing\na: 1\na: 2\n", "apiVersion: example.com/v1\nkind: Thing\nn: .nan\n",
	"a: [", "- 1", "a: b: c", "!!binary x", "? [1]\n: 2", "{}", "kind: [1]",
	"a: yes\nkind: Thing\napiVersion: example.com/v1",
	"\ufeffkind: Thing", "apiVersion: example.com/v1\nkind: Thing\ns: \"\\u00e9\\x41\"",
	"---\nkind: Thing\n---\nkind: Other",
}

func TestDecodeObject(t *testing.T) {
	for _, body := range bodies {
		for i := range 4 {
			compareDecode(t, body, i&1 != 0, i&2 != 0)
		}
	}
}

func FuzzDecodeObject(f *testing.F) {
	for _, body := range bodies {
		f.Add(body, false, true)
		f.Add(body, true, false)
	}
	f.Fuzz(compareDecode)
}

func compareDecode(t *testing.T, body string, yaml, strict bool) {
	t.Helper()
	contentType := codec.JSON
	if yaml {
		contentType = codec.YAML
	}
	want, wantStrict, wantErr := theirDecode(body, yaml, strict)
	got, gotStrict, gotErr := codec.DecodeObject([]byte(body), contentType, strict, thing)
	if text(gotErr) != text(wantErr) {
		t.Fatalf("%q yaml %v strict %v: error\n%v\nkube says\n%v", body, yaml, strict, gotErr, wantErr)
	}
	if gotErr != nil {
		return
	}
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gotStrict, wantStrict) {
		t.Fatalf("%q yaml %v strict %v: %v %q\nkube has %v %q", body, yaml, strict, got, gotStrict, want, wantStrict)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// theirDecode decodes a body like the create handler, up to the comparison of versions.
func theirDecode(body string, yaml, strict bool) (map[string]any, []string, error) {
	into := &unstructured.Unstructured{}
	defaults := thing
	obj, gvk, err := theirSerializer(yaml, strict).Decode([]byte(body), &defaults, into)
	var strictErrs []string
	if err != nil {
		strictErr, ok := runtime.AsStrictDecodingError(err)
		if !ok || obj == nil {
			if gvk != nil && len(gvk.Kind) > 0 {
				return nil, nil,
					fmt.Errorf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, thing.Kind, err)
			}
			// The start of the body after the text has a test of its own.
			_, _, ours := codec.DecodeObject([]byte(body), map[bool]string{true: codec.YAML, false: codec.JSON}[yaml],
				strict, thing)
			end := ""
			if i := strings.LastIndex(text(ours), " ("); i >= 0 {
				end = text(ours)[i:]
			}
			return nil, nil,
				fmt.Errorf("the object provided is unrecognized (must be of type %s): %v%s", thing.Kind, err, end)
		}
		for _, e := range strictErr.Errors() {
			strictErrs = append(strictErrs, e.Error())
		}
	}
	if got := gvk.GroupVersion(); got != thing.GroupVersion() {
		return nil, nil,
			fmt.Errorf("the API version in the data (%s) does not match the expected API version (%s)", got,
				thing.GroupVersion())
	}
	return obj.(*unstructured.Unstructured).Object, strictErrs, nil
}

// negotiated is the part of custom resources' serializer that negotiation uses.
type negotiated struct{ runtime.NegotiatedSerializer }

func (negotiated) SupportedMediaTypes() []runtime.SerializerInfo {
	info := func(minor string, stream bool) runtime.SerializerInfo {
		i := runtime.SerializerInfo{
			MediaType: "application/" + minor, MediaTypeType: "application", MediaTypeSubType: minor,
		}
		if stream {
			i.StreamSerializer = &runtime.StreamSerializerInfo{}
		}
		return i
	}
	return []runtime.SerializerInfo{info("json", true), info("yaml", false), info("vnd.kubernetes.protobuf", true),
		info("cbor", true)}
}

// restrictions are the restrictions of k8s.io/apiserver's RequestScope, for a built-in kind or a custom one.
type restrictions struct{ message bool }

func (restrictions) AllowsServerVersion(v string) bool { return v == "v1" }
func (restrictions) AllowsStreamSchema(s string) bool  { return s == "watch" }
func (r restrictions) AllowsMediaTypeTransform(major, minor string, kind *schema.GroupVersionKind) bool {
	switch {
	case kind == nil:
		return r.message || minor != "vnd.kubernetes.protobuf"
	case kind.Group != "meta.k8s.io" || kind.Version != "v1" && kind.Version != "v1beta1":
		return false
	}
	return kind.Kind == "Table" && (minor == "json" || minor == "yaml") || kind.Kind == "PartialObjectMetadata" ||
		kind.Kind == "PartialObjectMetadataList"
}

func TestNegotiate(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	pick := func(s ...string) string { return s[g.IntN(len(s))] }
	accepted := 0
	for range 20000 {
		var clauses []string
		for range g.IntN(4) {
			clause := pick("application/json", "application/yaml", "*/*", "application/*", "text/html", "*", "json",
				"application/json/x", " application/json ", "application/vnd.kubernetes.protobuf", "application/cbor")
			for range g.IntN(5) {
				clause += pick(";", "; ") + pick("q=0.5", "q=1", "q=0", "q=x", "as=Table", "as=PartialObjectMetadata",
					"as=Other", "g=meta.k8s.io", "g=other", "v=v1", "v=v1beta1", "v=v2", "stream=watch", "stream=x",
					"sv=v1", "sv=v2", "pretty=1", "pretty=0", "charset=utf-8", "as", "a=b=c", "")
			}
			clauses = append(clauses, clause)
		}
		r := httptest.NewRequest(http.MethodGet, "/x"+
			pick("", "", "?pretty=true", "?pretty=no", "?pretty", "?a=pretty"), nil)
		r = r.WithContext(codec.WithCBOR(r.Context()))
		message := g.IntN(2) == 0
		r.Header.Set("Accept", strings.Join(clauses, pick(",", ", ")))
		r.Header.Set("User-Agent", pick("curl/8", "kubectl", "Wget/1", "Mozilla/5.0", "Mozilla/4.0"))
		opts, ok := negotiation.NegotiateMediaTypeOptions(r.Header.Get("Accept"), negotiated{}.SupportedMediaTypes(),
			restrictions{message})
		got, err := codec.Negotiate(r, codec.Offer{Message: message})
		if ok != (err == nil) {
			t.Fatalf("%q: %+v, %v, kube says %v", r.Header.Get("Accept"), got, err, ok)
		}
		if !ok {
			continue
		}
		accepted++
		want := codec.Media{Type: opts.Accepted.MediaType, Pretty: got.Pretty}
		if opts.Convert != nil {
			want.As, want.Group, want.Version = opts.Convert.Kind, opts.Convert.Group, opts.Convert.Version
		}
		if got != want {
			t.Fatalf("%q: %+v, kube has %+v", r.Header.Get("Accept"), got, want)
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d requests were acceptable", accepted)
	}
}

func TestWriteError(t *testing.T) {
	things := schema.GroupResource{Group: "example.com", Resource: "things"}
	for _, err := range []error{
		errors.New("boom"), apierrors.NewNotFound(things, "x"), apierrors.NewConflict(things, "x", errors.New("old")),
		apierrors.NewInternalError(errors.New("inner")),
		apierrors.NewTooManyRequests("slow", 3), apierrors.NewInvalid(thing.GroupKind(), "x", nil),
		&apierrors.StatusError{}, apierrors.NewForbidden(things, "x", errors.New("no")),
		apierrors.NewRequestEntityTooLargeError("limit is 3145728"), apierrors.NewMethodNotSupported(things, "patch"),
		apierrors.NewTimeoutError("late", 2),
	} {
		for _, accept := range []string{"", "application/json", "application/yaml", "text/html",
			"application/json;as=Table;g=meta.k8s.io;v=v1,application/json", "*/*",
			"application/vnd.kubernetes.protobuf,application/json", "application/cbor"} {
			for _, query := range []string{"", "?pretty=true"} {
				r := httptest.NewRequest(http.MethodGet, "/x"+query, nil)
				if accept != "" {
					r.Header.Set("Accept", accept)
				}
				got, want := httptest.NewRecorder(), httptest.NewRecorder()
				codec.WriteError(got, r, err)
				responsewriters.ErrorNegotiated(err, scheme.Codecs.WithoutConversion(),
					schema.GroupVersion{Version: "v1"}, want, r)
				if got.Code != want.Code || got.Body.String() != want.Body.String() {
					t.Errorf("%v, Accept %q%s: %d\n%s\nkube writes %d\n%s", err, accept, query, got.Code, got.Body,
						want.Code, want.Body)
				}
				for _, header := range []string{"Content-Type", "Retry-After"} {
					if got.Header().Get(header) != want.Header().Get(header) {
						t.Errorf("%v, Accept %q: %s %q, kube has %q", err, accept, header, got.Header().Get(header),
							want.Header().Get(header))
					}
				}
			}
		}
	}
}

func TestWriteObject(t *testing.T) {
	obj := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "<x>"},
		"spec": map[string]any{
			"n": int64(1), "f": 1e21, "s": "a\u2028&\x01", "e": []any{}, "m": map[string]any{},
			"long": strings.Repeat("y: 'z' ", 30), "yes": "yes", "num": "1",
		}}
	doc, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	for media, options := range map[codec.Media]serializer.SerializerOptions{
		{Type: codec.JSON}: {}, {Type: codec.JSON, Pretty: true}: {Pretty: true}, {Type: codec.YAML}: {Yaml: true},
	} {
		var want strings.Builder
		s := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, creater{}, typer{}, options)
		if err := s.Encode(&unstructured.Unstructured{Object: obj}, &want); err != nil {
			t.Fatal(err)
		}
		got := httptest.NewRecorder()
		codec.WriteObject(got, httptest.NewRequest(http.MethodGet, "/x", nil), 200, doc, media)
		if got.Body.String() != want.String() {
			t.Errorf("%+v:\n%s\nkube writes\n%s", media, got.Body, want.String())
		}
	}
}
