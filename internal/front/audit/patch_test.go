package audit

import (
	"fmt"
	"math/rand/v2"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, after, want string }{
		{`{}`, `{}`, `[]`},
		{`{"a":1}`, `{"a":1}`, `[]`},
		{`null`, `{"a":1}`, `[{"op":"add","path":"","value":{"a":1}}]`},
		{`{"a":1}`, `null`, `[{"op":"remove","path":""}]`},
		{`{"a":1,"b":2}`, `{"b":3,"c":4}`,
			`[{"op":"remove","path":"/a"},{"op":"replace","path":"/b","value":3},{"op":"add","path":"/c","value":4}]`},
		{`{"a":1}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
		{`{"a/b~":{"x":1}}`, `{"a/b~":{"x":2}}`, `[{"op":"replace","path":"/a~1b~0/x","value":2}]`},
		{`{"l":[1,2,3]}`, `{"l":[1,3]}`, `[{"op":"remove","path":"/l/1"}]`},
		{`{"l":[1,3]}`, `{"l":[1,2,3]}`, `[{"op":"add","path":"/l/1","value":2}]`},
		{`{"l":[{"n":"a","v":1},{"n":"b"}]}`, `{"l":[{"n":"a","v":2},{"n":"b"}]}`,
			`[{"op":"replace","path":"/l/0/v","value":2}]`},
		{`{"l":[1]}`, `{"l":{"0":1}}`, `[{"op":"replace","path":"/l","value":{"0":1}}]`},
		{`{"f":false}`, `{}`, `[{"op":"remove","path":"/f"}]`},
		{`{}`, `{"f":false,"s":"","z":0}`,
			`[{"op":"add","path":"/f","value":false},{"op":"add","path":"/s","value":""},{"op":"add","path":"/z","value":0}]`},
	} {
		got, err := encodePatch(diff(parse(t, c.before), parse(t, c.after)))
		if err != nil || string(got) != c.want {
			t.Errorf("from %s to %s: got %s, %v, want %s", c.before, c.after, got, err, c.want)
		}
	}
}

func parse(t *testing.T, doc string) map[string]any {
	t.Helper()
	v, err := codec.DecodeJSON([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	obj, _ := v.(map[string]any)
	return obj
}

// TestDiffApplies creates patches between random objects and applies them with the library.
func TestDiffApplies(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		before := randomObject(r, 3)
		after := before
		if r.IntN(3) == 0 {
			after = randomObject(r, 3)
		} else {
			after = mutated(r, before).(map[string]any)
		}
		raw, err := encodePatch(diff(before, after))
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(raw)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		from, want := codec.AppendJSON(nil, before), codec.AppendJSON(nil, after)
		got, err := patch.Apply(from)
		if err != nil || !jsonpatch.Equal(got, want) {
			t.Fatalf("%s and %s make %s, %v, want %s", from, raw, got, err, want)
		}
	}
}

func randomObject(r *rand.Rand, depth int) map[string]any {
	obj := map[string]any{}
	for range r.IntN(4) {
		obj[fmt.Sprintf("%c", 'a'+r.IntN(4))] = randomValue(r, depth)
	}
	return obj
}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(7); {
	case n < 2 && depth > 0:
		return randomObject(r, depth-1)
	case n < 4 && depth > 0:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	case n == 4:
		return "~/"
	case n == 5:
		return r.IntN(2) == 0
	}
	return int64(r.IntN(3))
}

// mutated returns a copy of v with a few places changed.
func mutated(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if r.IntN(8) > 0 {
				out[key] = mutated(r, value)
			}
		}
		if r.IntN(4) == 0 {
			out["z"] = randomValue(r, 1)
		}
		return out
	case []any:
		out := []any{}
		for _, value := range v {
			if r.IntN(6) == 0 {
				out = append(out, randomValue(r, 1))
			}
			if r.IntN(6) > 0 {
				out = append(out, mutated(r, value))
			}
		}
		return out
	}
	if r.IntN(6) == 0 {
		return randomValue(r, 1)
	}
	return v
}
