package codec

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
)

func FuzzAppendJSON(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc))
	}
	f.Add([]byte(`["<a href=\"x\">&</a>","\u2028\u2029",1e21,1e20,1e-6,1e-7,-1e-9,0.1,100000000000000000000000]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := DecodeJSON(data)
		if err != nil {
			return
		}
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendJSON([]byte("x"), v); !bytes.Equal(got[1:], want) {
			t.Fatalf("%s, encoding/json writes %s", got[1:], want)
		}
	})
}

func TestAppendJSON(t *testing.T) {
	for _, v := range []any{
		nil, true, "", "a\x00\x1f\x7f\xff<>&\u2028\u2029é", int64(math.MinInt64), int64(math.MaxInt64), math.MaxFloat64,
		math.SmallestNonzeroFloat64, math.Copysign(0, -1), 1e21, 1e-7,
		[]any{}, []any(nil), map[string]any{}, map[string]any(nil),
		map[string]any{"b": 1, "a": int32(2), "c": map[string]any{"z": nil, "y": []any{1.5}}},
		map[string]string{"b": "x", "a": "y"}, json.RawMessage(`{"raw":1}`), struct{ A int }{1},
	} {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendJSON(nil, v); !bytes.Equal(got, want) {
			t.Errorf("%#v: %s, encoding/json writes %s", v, got, want)
		}
	}
	if got := string(AppendJSON(nil, []any{math.NaN(), math.Inf(1)})); got != "[null,null]" {
		t.Errorf("not a number: %s", got)
	}
}
