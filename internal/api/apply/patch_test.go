package apply

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kjson "sigs.k8s.io/json"
)

func decode(t *testing.T, doc string) (v any) {
	t.Helper()
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(doc), &v); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return v
}

// mergePatches are pairs of a document and a patch: the examples of RFC 7386, appendix A, and where libraries differ.
var mergePatches = [][2]string{
	{`{"a":"b"}`, `{"a":"c"}`}, {`{"a":"b"}`, `{"b":"c"}`}, {`{"a":"b"}`, `{"a":null}`},
	{`{"a":"b","b":"c"}`, `{"a":null}`},
	{`{"a":["b"]}`, `{"a":"c"}`}, {`{"a":"c"}`, `{"a":["b"]}`}, {`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`},
	{`{"a":[{"b":"c"}]}`, `{"a":[1]}`},
	{`{"e":null}`, `{"a":1}`}, {`{}`, `{"a":{"bb":{"ccc":null}}}`}, {`{}`, `{"a":[null,{"b":null},[{"c":null}]]}`},
	{`{"a":1}`, `{"a":[null,{"b":null}]}`},
	{`{"a":null}`, `{"a":{"b":null,"c":[{"d":null}]}}`}, {`{"a":[1]}`, `{"a":{"b":null,"c":1}}`},
	{`{"a":{}}`, `{"a":[{"b":null}]}`}, {`{"n":9007199254740993}`, `{"m":1.0}`},
	{`{"a":{"b":null}}`, `{"a":{"c":1}}`}, {`{"a":1}`, `{}`}, {`{"a":{"b":{"c":1}}}`, `{"a":{"b":null}}`},
}

func TestMergePatchMatchesLibrary(t *testing.T) {
	for _, pair := range mergePatches {
		compareMerge(t, pair[0], pair[1])
	}
}

func FuzzMergePatch(f *testing.F) {
	for _, pair := range mergePatches {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, doc, patch string) {
		for _, s := range []string{doc, patch} {
			var v map[string]any
			if kjson.UnmarshalCaseSensitivePreserveInts([]byte(s), &v) != nil || v == nil {
				return
			}
		}
		compareMerge(t, doc, patch)
	})
}

func compareMerge(t *testing.T, doc, patch string) {
	t.Helper()
	raw, err := jsonpatch.MergePatch([]byte(doc), []byte(patch))
	if err != nil {
		return
	}
	want := decode(t, string(raw))
	if got := MergePatch(decode(t, doc), decode(t, patch)); !equality.Semantic.DeepEqual(got, want) {
		g, _ := json.Marshal(got)
		t.Errorf("%s patched with %s: %s, library makes %s", doc, patch, g, raw)
	}
}

func TestDecodeMergePatch(t *testing.T) {
	for _, c := range []struct{ patch, strict, lenient string }{
		{`{"a":1}`, "", ""},
		{`[1]`, "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}", ""},
		{`{`, "error decoding patch: unexpected end of JSON input", "Invalid JSON Patch"},
		{``, "error decoding patch: unexpected end of JSON input", "Invalid JSON Patch"},
		{`null`, "Invalid JSON Patch", "Invalid JSON Patch"},
		{`"x"`, "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}",
			"Invalid JSON Patch"},
	} {
		for strict, want := range map[bool]string{true: c.strict, false: c.lenient} {
			_, _, err := DecodeMergePatch([]byte(c.patch), strict)
			if want == "" && err != nil || want != "" &&
				(err == nil || err.Error() != want || !apierrors.IsBadRequest(err)) {
				t.Errorf("%q strict %v: %v, want %q", c.patch, strict, err, want)
			}
		}
	}
	if _, errs, _ := DecodeMergePatch([]byte(`{"a":{"b":1,"b":2}}`), true); len(errs) != 1 ||
		errs[0] != `duplicate field "a.b"` {
		t.Errorf("duplicates: %q", errs)
	}
}

func TestJSONPatch(t *testing.T) {
	many := "[" + strings.Repeat(`{"op":"test","path":"/a","value":1},`, 10000) + `{"op":"test","path":"/a","value":1}]`
	double := "[" + strings.Repeat(`{"op":"copy","from":"/b","path":"/b/-"},`, 40) +
		`{"op":"test","path":"/a","value":1}]`
	for _, c := range []struct {
		patch, want string
		code        int32
		message     string
	}{
		{patch: `[{"op":"add","path":"/c","value":{"x":null}}]`, want: `{"a":1,"b":["x"],"c":{"x":null}}`},
		{patch: `[{"op":"replace","path":"/a","value":2},{"op":"remove","path":"/b/0"}]`, want: `{"a":2,"b":[]}`},
		{patch: `[]`, want: `{"a":1,"b":["x"]}`},
		{
			patch: `{"op":"add"}`, code: 400,
			message: "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
		},
		{patch: `[{"op":"add"`, code: 400, message: "unexpected end of JSON input"},
		{
			patch: `[{"op":"test","path":"/a","value":9}]`, code: 422,
			message: "the server rejected our request due to an error in our request",
		},
		{patch: `[{"op":"remove","path":"/nope"}]`, code: 422, message: ""},
		{
			patch: many, code: 413,
			message: "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
		},
		{patch: double, code: 422, message: ""},
	} {
		got, err := JSONPatch(t.Context(), decode(t, `{"a":1,"b":["x"]}`).(map[string]any), []byte(c.patch))
		if c.code == 0 {
			if err != nil || !equality.Semantic.DeepEqual(got, decode(t, c.want)) {
				t.Errorf("%.60s: %v, %v", c.patch, got, err)
			}
			continue
		}
		status, ok := err.(*apierrors.StatusError)
		if !ok || status.ErrStatus.Code != c.code || c.message != "" && status.ErrStatus.Message != c.message {
			t.Errorf("%.60s: %v, want %d %s", c.patch, err, c.code, c.message)
		}
	}
	errs, err := CheckJSONPatch([]byte(`[{"op":"add","path":"/a","value":{"x":1},"nope":1}]`))
	if err != nil || len(errs) != 1 || errs[0] != `json patch unknown field "[0].nope"` {
		t.Errorf("strict: %q, %v", errs, err)
	}
	if _, err := CheckJSONPatch([]byte(`{}`)); !apierrors.IsBadRequest(err) {
		t.Errorf("strict: %v", err)
	}
}

func TestStrategicMerge(t *testing.T) {
	original := decode(t, `{"metadata":{"name":"x","finalizers":["a"]},"secrets":[{"name":"s1"}]}`).(map[string]any)
	patch := decode(t, `{"metadata":{"finalizers":["b"]},"secrets":[{"name":"s2"}]}`).(map[string]any)
	got, err := StrategicMerge(original, patch, corev1.ServiceAccount{})
	if err != nil {
		t.Fatal(err)
	}
	want := decode(t, `{"metadata":{"name":"x","finalizers":["a","b"]},"secrets":[{"name":"s1"},{"name":"s2"}]}`)
	meta, secrets := got["metadata"].(map[string]any), got["secrets"].([]any)
	if len(meta["finalizers"].([]any)) != 2 || len(secrets) != 2 {
		t.Errorf("%v, want %v", got, want)
	}
	// At this the library panics.
	broken := decode(t, `{"metadata":{"$retainKeys":[{"name":"a"}]}}`).(map[string]any)
	if got, err := StrategicMerge(got, broken, corev1.ServiceAccount{}); got != nil || !apierrors.IsBadRequest(err) {
		t.Errorf("%v, %v", got, err)
	}
}
