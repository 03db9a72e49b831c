package codec

import (
	"reflect"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var cronTab = schema.GroupVersionKind{Group: "stable.example.com", Version: "v1", Kind: "CronTab"}

// TestDecodeObject holds texts of kube-apiserver; test/oracle/codec compares many more with its decoder.
func TestDecodeObject(t *testing.T) {
	const good = `{"apiVersion":"stable.example.com/v1","kind":"CronTab","spec":{"n":1,"f":1.5}}`
	object := map[string]any{
		"apiVersion": "stable.example.com/v1", "kind": "CronTab", "spec": map[string]any{"n": int64(1), "f": 1.5},
	}
	for _, c := range []struct {
		name, body, contentType string
		strict                  bool
		want                    map[string]any
		duplicates              []string
		code                    int32
		message                 string
	}{
		{name: "json", body: good, want: object},
		{name: "json with parameters", body: good, contentType: "application/json; charset=utf-8", want: object},
		{
			name: "yaml", body: "apiVersion: stable.example.com/v1\nkind: CronTab\nspec: {'n': 1, f: 1.5}\n",
			contentType: YAML, strict: true, want: object,
		},
		{
			name: "other kind", body: `{"apiVersion":"stable.example.com/v1","kind":"Other"}`,
			want: map[string]any{"apiVersion": "stable.example.com/v1", "kind": "Other"},
		},
		{name: "duplicates",
			body:   `{"apiVersion":"stable.example.com/v1","kind":"CronTab","spec":{"a":1,"a":2,"l":[{"b":1,"b":1}]}}`,
			strict: true,
			want: map[string]any{
				"apiVersion": "stable.example.com/v1", "kind": "CronTab",
				"spec": map[string]any{"a": int64(2), "l": []any{map[string]any{"b": int64(1)}}},
			},
			duplicates: []string{`duplicate field "spec.a"`, `duplicate field "spec.l[0].b"`}},
		{name: "yaml duplicates", body: "apiVersion: stable.example.com/v1\nkind: CronTab\na: 1\na: 2\n",
			contentType: YAML, strict: true,
			want:       map[string]any{"apiVersion": "stable.example.com/v1", "kind": "CronTab", "a": int64(2)},
			duplicates: []string{"yaml: unmarshal errors:\n  line 4: key \"a\" already set in map"}},
		{
			name: "media type", body: good, contentType: "text/plain", code: 415,
			message: "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
		},
		{
			name: "broken media type", body: good, contentType: "application/", code: 415,
			message: "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
		},
		{
			name: "empty", body: "", code: 400,
			message: "the object provided is unrecognized (must be of type CronTab): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)",
		},
		{
			name: "malformed", body: `{"kind":"CronTab",}`, code: 400,
			message: `the object provided is unrecognized (must be of type CronTab): couldn't get version/kind; json parse error: invalid character '}' looking for beginning of object key string ({"kind":"CronTab",})`,
		},
		{
			name: "no object", body: `[1,2]`, code: 400,
			message: `the object provided is unrecognized (must be of type CronTab): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b312c325d)`,
		},
		{
			name: "no kind", body: ` {"apiVersion":"stable.example.com/v1"}`, code: 400,
			message: `CronTab in version "v1" cannot be handled as a CronTab: Object 'Kind' is missing in '{"apiVersion":"stable.example.com/v1"}'`,
		},
		{
			name: "no kind, strict", body: ` {"apiVersion":"stable.example.com/v1"}`, strict: true, code: 400,
			message: `the object provided is unrecognized (must be of type CronTab): Object 'Kind' is missing in ' {"apiVersion":"stable.example.com/v1"}' (207b2261706956657273696f6e223a22737461626c652e6578616d706c65 ...)`,
		},
		{
			name: "no apiVersion", body: `{"kind":"CronTab"}`, code: 400,
			message: "the API version in the data () does not match the expected API version (stable.example.com/v1)",
		},
		{
			name: "other version", body: `{"kind":"CronTab","apiVersion":"stable.example.com/v2"}`, code: 400,
			message: "the API version in the data (stable.example.com/v2) does not match the expected API version (stable.example.com/v1)",
		},
		{
			name: "number out of range", body: `{"kind":"CronTab","apiVersion":"stable.example.com/v1","n":1e999}`,
			strict: true, code: 400,
			message: `CronTab in version "v1" cannot be handled as a CronTab: json: cannot unmarshal number 1e999 into Go value of type float64`,
		},
		{
			name: "yaml malformed", body: "a: [1", contentType: YAML, code: 400,
			message: "the object provided is unrecognized (must be of type CronTab): yaml: line 1: did not find expected ',' or ']' (613a205b31)",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, duplicates, err := DecodeObject([]byte(c.body), c.contentType, c.strict, cronTab)
			if c.code != 0 {
				status, ok := err.(*apierrors.StatusError)
				if !ok || status.ErrStatus.Code != c.code || status.ErrStatus.Message != c.message {
					t.Fatalf("error\n%v, want %d\n%s", err, c.code, c.message)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(duplicates, c.duplicates) {
				t.Fatalf("%v, %q, %v", got, duplicates, err)
			}
		})
	}
	err := StrictError(object, []string{`duplicate field "a"`, `unknown field "b"`}, cronTab)
	if want := `CronTab in version "v1" cannot be handled as a CronTab: strict decoding error: duplicate field "a", unknown field "b"`; err.Error() != want || !apierrors.IsBadRequest(err) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestDecodeApply(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       map[string]any
		duplicates string
		err        string
	}{
		{
			name: "json", body: `{"a":1,"b":1.0,"c":[2.5,1e3],"d":{"e":1e30}}`,
			want: map[string]any{
				"a": int64(1), "b": int64(1), "c": []any{2.5, int64(1000)}, "d": map[string]any{"e": 1e30},
			},
		},
		{
			name: "yaml", body: "a: 1\nb: 1.0\nc: [2.5, 1e3]\nd: {e: 1e30}\n",
			want: map[string]any{
				"a": int64(1), "b": int64(1), "c": []any{2.5, int64(1000)}, "d": map[string]any{"e": 1e30},
			},
		},
		{
			name: "json duplicates", body: `{"a":1,"a":2}`, want: map[string]any{"a": int64(2)},
			duplicates: "error converting YAML to JSON: yaml: unmarshal errors:\n  line 1: key \"a\" already set in map",
		},
		{
			name: "list", body: `[1]`,
			err: "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
		},
		{
			name: "malformed", body: `a: [`,
			err: "error converting YAML to JSON: yaml: line 1: did not find expected node content",
		},
		{name: "empty", body: ``, want: map[string]any{}},
		{name: "null", body: `null`, want: map[string]any{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, duplicates, err := DecodeApply([]byte(c.body), true)
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Fatalf("error %v, want %s", err, c.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Fatalf("%#v, %v", got, err)
			}
			if (duplicates == nil) != (c.duplicates == "") || duplicates != nil && duplicates.Error() != c.duplicates {
				t.Fatalf("duplicates %v, want %s", duplicates, c.duplicates)
			}
		})
	}
}

// TestDecodeTyped checks that a body of a kind with a Go type may omit its kind.
func TestDecodeTyped(t *testing.T) {
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for _, c := range []struct {
		body             string
		want             schema.GroupVersionKind
		apiVersion, kind string
	}{
		{`{}`, configMap, "v1", "ConfigMap"},
		{`{"kind":"ConfigMap"}`, configMap, "v1", "ConfigMap"},
		{`{"apiVersion":"v1"}`, configMap, "v1", "ConfigMap"},
		{`{}`, deployment, "apps/v1", "Deployment"},
		{`{"kind":"Secret"}`, deployment, "apps/v1", "Secret"},
		{`{"apiVersion":"v1","kind":"Secret"}`, deployment, "v1", "Secret"},
		{`{"apiVersion":"apps/v2"}`, deployment, "apps/v2", "Deployment"},
	} {
		obj, _, err := DecodeTyped([]byte(c.body), "", true, c.want)
		if err != nil || obj["apiVersion"] != c.apiVersion || obj["kind"] != c.kind {
			t.Errorf("%s for %s: %v, %v", c.body, c.want.Kind, obj, err)
		}
	}
	if _, _, err := DecodeTyped([]byte(`{`), "", true, configMap); !apierrors.IsBadRequest(err) {
		t.Errorf("malformed: %v", err)
	}
}

// TestDecodeNull: null is an object without fields for a kind that has a Go type, and lacks its kind otherwise.
func TestDecodeNull(t *testing.T) {
	want := map[string]any{"apiVersion": "stable.example.com/v1", "kind": "CronTab"}
	for _, c := range [][2]string{{"null", JSON}, {" null\n", JSON}, {"null", YAML}, {"", YAML}, {"---\n", YAML},
		{"# nothing", YAML}} {
		for _, strict := range []bool{false, true} {
			obj, _, err := DecodeTyped([]byte(c[0]), c[1], strict, cronTab)
			if err != nil || !reflect.DeepEqual(obj, want) {
				t.Errorf("%q as %s: %v, %v", c[0], c[1], obj, err)
			}
			if obj, _, err := DecodeObject([]byte(c[0]), c[1], strict, cronTab); !apierrors.IsBadRequest(err) {
				t.Errorf("%q as %s without a type: %v, %v", c[0], c[1], obj, err)
			}
		}
	}
}

// FuzzDecodeBody decodes arbitrary bytes in every form: the result is an object with a kind, or a 400.
func FuzzDecodeBody(f *testing.F) {
	for _, seed := range []string{"null", "", "---\n", "[]", "1", `{"kind":"CronTab"}`, `{"KIND":"a","kind":null}`,
		`{"apiVersion":"a/b/c"}`, "\xa1DkindGCronTab", "\xf6", "\xd9\xd9\xf7\xa0"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(form string, obj map[string]any, err error) {
			if err == nil && (obj == nil || text(obj["kind"]) == "") {
				t.Errorf("%q as %s: %v", data, form, obj)
			}
			if err != nil && !apierrors.IsBadRequest(err) {
				t.Errorf("%q as %s: %v", data, form, err)
			}
		}
		for _, strict := range []bool{false, true} {
			for _, form := range []string{JSON, YAML} {
				obj, _, err := DecodeTyped(data, form, strict, cronTab)
				check(form, obj, err)
				obj, _, err = DecodeObject(data, form, strict, cronTab)
				check(form, obj, err)
			}
		}
		obj, err := DecodeTypedCBOR(data, cronTab)
		check(CBOR, obj, err)
		obj, err = DecodeCBOR(data, cronTab)
		check(CBOR, obj, err)
		if obj, _, err := DecodeApply(data, true); err == nil && obj == nil {
			t.Errorf("%q as an apply: nothing", data)
		}
	})
}
