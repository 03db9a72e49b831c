package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kjson "sigs.k8s.io/json"
)

// comparePatch applies a JSON patch by the library and by ApplyOperations. Both must have the same result or error
// text.
func comparePatch(t *testing.T, doc, patch []byte) {
	t.Helper()
	var obj map[string]any
	if kjson.UnmarshalCaseSensitivePreserveInts(doc, &obj) != nil || obj == nil {
		return
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil || len(operations) > maxOperations {
		return
	}
	want, wanted, ok := byLibrary(doc, operations)
	got, err := ApplyOperations(t.Context(), obj, operations)
	if !ok {
		return
	}
	if wanted != nil || err != nil {
		if fmt.Sprint(wanted) != fmt.Sprint(err) {
			t.Errorf("%s patched with %s:\n%v, library\n%v", doc, patch, err, wanted)
		}
		return
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s patched with %s:\n%v, library\n%v", doc, patch, got, want)
	}
}

// byLibrary applies a patch by the library. ok is false if it panics, or if the results are not comparable: the library
// uses null for the value of an array or object copied from there, and compares numbers and strings by their text.
func byLibrary(doc []byte, operations jsonpatch.Patch) (v any, err error, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	for _, op := range operations {
		if value, has := op["value"]; op.Kind() == "test" &&
			(!has || value != nil && strings.ContainsAny(string(*value), `.eE\<>&`)) {
			return nil, nil, false
		}
	}
	raw, err := operations.Apply(doc)
	if err != nil {
		return nil, err, true
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(raw, &v)
	return v, nil, err == nil
}

// TestJSONPatchAsLibrary compares random patches with the library that Kubernetes uses.
func TestJSONPatchAsLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	applied := 0
	for range 20000 {
		doc, patch := randomDocument(r, 3), randomPatch(r)
		comparePatch(t, doc, patch)
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Fatal(err)
		}
		if _, err, ok := byLibrary(doc, operations); ok && err == nil {
			applied++
		}
	}
	if applied < 500 {
		t.Errorf("only %d of the patches could be applied", applied)
	}
}

func randomDocument(r *rand.Rand, depth int) []byte {
	doc := map[string]any{}
	for _, key := range []string{"a", "b", "c/d", "~"} {
		if r.IntN(3) > 0 {
			doc[key] = randomValue(r, depth)
		}
	}
	raw, _ := json.Marshal(doc)
	return raw
}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return r.IntN(2) == 0
	case n < 4 || depth == 0:
		return []any{1, 2, "x", "", "1"}[r.IntN(5)]
	case n < 6:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	m := map[string]any{}
	for range r.IntN(4) {
		m[[]string{"a", "b", "0", "-"}[r.IntN(4)]] = randomValue(r, depth-1)
	}
	return m
}

func randomPatch(r *rand.Rand) []byte {
	path := func() string {
		s := ""
		for range 1 + r.IntN(3) {
			s += "/" + []string{"a", "b", "0", "1", "-1", "-", "c~1d", "~0", "-9", "+1", ""}[r.IntN(11)]
		}
		if r.IntN(20) == 0 {
			return ""
		}
		return s
	}
	var out []map[string]any
	for range 1 + r.IntN(4) {
		op := map[string]any{
			"op": []string{"add", "remove", "replace", "move", "copy", "test", "add", "other"}[r.IntN(8)],
		}
		for name, value := range map[string]any{"path": path(), "from": path(), "value": randomValue(r, 2)} {
			if r.IntN(20) > 0 {
				op[name] = value
			}
		}
		out = append(out, op)
	}
	raw, _ := json.Marshal(out)
	return raw
}

func FuzzJSONPatch(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add(randomDocument(r, 3), randomPatch(r))
	}
	f.Add([]byte(`{"a":[null]}`), []byte(`[{"op":"test","path":"/a","value":[null]},null,{"op":"add","path":7}]`))
	f.Add([]byte(`{"a":null}`), []byte(`[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/c","value":1}]`))
	f.Fuzz(comparePatch)
}

// TestHostileJSONPatches applies small patches with large effects.
func TestHostileJSONPatches(t *testing.T) {
	nested := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	inner := strings.Repeat("/0", 4999)
	for name, c := range map[string]struct{ patch, want string }{
		"copies that double": {
			`[` + strings.Repeat(`{"op":"copy","from":"/b","path":"/b/-"},`, 4000) + `{"op":"remove","path":"/a"}]`,
			"Unable to complete the copy, the accumulated size increase of copy is ",
		},
		"copies into arrays": {
			`[{"op":"add","path":"/a","value":"` + strings.Repeat("x", 1<<20) + `"}` +
				strings.Repeat(`,{"op":"copy","from":"/a","path":"/b/-"}`, 4) + `]`,
			"Unable to complete the copy, the accumulated size increase of copy is ",
		},
		"many operations": {
			`[` + strings.Repeat(`{"op":"test","path":"/a","value":1},`, 10000) + `{"op":"remove","path":"/a"}]`,
			"a JSON patch may have 10000 operations, this one has 10001",
		},
		"nesting": {
			`[{"op":"add","path":"/a","value":` + nested + `},{"op":"add","path":"/b","value":` + nested + `},` +
				`{"op":"move","from":"/b","path":"/a` + inner + `/-"},{"op":"add","path":"/b","value":` + nested +
				`},` +
				`{"op":"move","from":"/a","path":"/b` + inner + `/-"}]`,
			"the patched object nests deeper than 10000 levels",
		},
		"copies of what nests too deep": {
			`[{"op":"add","path":"/a","value":` + nested + `},{"op":"add","path":"/b","value":` + nested + `},` +
				`{"op":"move","from":"/b","path":"/a` + inner + `/-"},{"op":"add","path":"/b","value":` + nested +
				`},` +
				`{"op":"move","from":"/a","path":"/b` + inner + `/-"},{"op":"copy","from":"/b","path":"/c"}]`,
			"the patched object nests deeper than 10000 levels",
		},
		"null as an object": {`[{"op":"add","path":"/a","value":null},{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/c/d","value":1}]`,
			`add operation does not apply: doc is missing path: "/c/d": missing value`},
		"a test of null in an array": {`[{"op":"test","path":"/b/0","value":[null]}]`,
			"testing value /b/0 failed: test failed"},
		"no value for all of it": {`[{"op":"replace","path":""}]`,
			"replace operation value must be object or array: %!w(<nil>)"},
	} {
		operations, err := jsonpatch.DecodePatch([]byte(c.patch))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = ApplyOperations(t.Context(), decode(t, `{"a":1,"b":["x"]}`).(map[string]any), operations)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestJSONPatchEnds checks that a patch stops when its context ends, with the context's error.
func TestJSONPatchEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	obj := map[string]any{"a": int64(1)}
	_, err := JSONPatch(ctx, obj, []byte(`[{"op":"remove","path":"/a"}]`))
	if !errors.Is(err, context.Canceled) || apierrors.IsInvalid(err) || obj["a"] == nil {
		t.Errorf("%v, %v", err, obj)
	}
}
