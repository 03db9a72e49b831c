package codec

import (
	"bytes"
	"math"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// randomValue returns decoded JSON.
func randomValue(g *rand.Rand, depth int) any {
	switch n := g.IntN(9); {
	case n < 2 && depth > 0:
		m := map[string]any{}
		for range g.IntN(30) {
			m[strings.Repeat("k", g.IntN(300)/10)+string(rune('a'+g.IntN(26)))] = randomValue(g, depth-1)
		}
		return m
	case n == 2 && depth > 0:
		list := []any{}
		for range g.IntN(30) {
			list = append(list, randomValue(g, depth-1))
		}
		return list
	case n == 3:
		return int64(g.Uint64()) >> g.IntN(64)
	case n == 4:
		return math.Ldexp(float64(g.IntN(4097)-2048), g.IntN(60)-40)
	case n == 5:
		return math.Float64frombits(g.Uint64()&^(1<<62)) * 2 // finite
	case n == 6:
		return g.IntN(2) == 0
	case n == 7:
		return nil
	}
	return strings.Repeat("ü<\x00", g.IntN(100))
}

func TestAppendCBORWritesWhatKubeWrites(t *testing.T) {
	g := rand.New(rand.NewPCG(7, 7))
	values := []any{0.0, math.Copysign(0, -1), 1.5, 65504.0, 65505.0, 65520.0, math.SmallestNonzeroFloat64,
		math.MaxFloat64, math.MaxFloat32, float64(math.SmallestNonzeroFloat32),
		math.Ldexp(1, -24), math.Ldexp(1, -25), math.Ldexp(3, -24), math.Ldexp(1, -14), math.Ldexp(1023, -24),
		math.Ldexp(2047, -25), int64(math.MinInt64), int64(math.MaxInt64), int64(-1), int64(23), int64(24), int64(-24),
		int64(-25),
		map[string]any(nil), []any(nil), map[string]any{}, []any{}}
	for range 5000 {
		values = append(values, randomValue(g, 3))
	}
	for _, v := range values {
		want, err := cbor.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got := AppendCBOR(nil, v)
		if !bytes.Equal(got, want) {
			t.Fatalf("%v:\n%x\nkube writes\n%x", v, got, want)
		}
	}
}

func TestDecodeCBOR(t *testing.T) {
	want := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	encode := func(v any) []byte {
		raw, err := cbor.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	obj := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "n": int64(3), "f": 1.5, "list": []any{"a", nil, true},
	}
	for _, prefix := range []string{"", cborTag} {
		got, err := DecodeCBOR(append([]byte(prefix), encode(obj)...), want)
		if err != nil || !reflect.DeepEqual(got, obj) {
			t.Errorf("%v, %v", got, err)
		}
	}
	for text, bad := range map[string][]byte{
		"unable to determine group/version/kind":      encode([]any{"a"}),
		"unable to determine group/version/kind: EOF": nil,
		"Object 'Kind' is missing in '{": encode(map[string]any{
			"apiVersion": "example.com/v1",
		}),
		"the API version in the data (v1) does not match": encode(map[string]any{
			"apiVersion": "v1", "kind": "Thing",
		}),
		"unexpected GroupVersion string: a/b/c": encode(map[string]any{
			"apiVersion": "a/b/c", "kind": "Thing",
		}),
		"cannot unmarshal positive integer into Go struct field": encode(map[string]any{
			"apiVersion": int64(1), "kind": "Thing",
		}),
	} {
		if _, err := DecodeCBOR(bad, want); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("want %q: %v", text, err)
		}
	}
}

// TestDecodeTypedCBOR checks that a body of a kind with a Go type may omit its kind.
func TestDecodeTypedCBOR(t *testing.T) {
	want := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	for _, test := range []struct{ obj, want map[string]any }{
		{map[string]any{"spec": int64(1)}, map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": int64(1)}},
		{map[string]any{"kind": "Node"}, map[string]any{"apiVersion": "v1", "kind": "Node"}},
		{map[string]any{"apiVersion": "apps/v1"}, map[string]any{"apiVersion": "apps/v1", "kind": "Pod"}},
	} {
		raw, err := cbor.Marshal(test.obj)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeTypedCBOR(raw, want)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%v: %v, %v", test.obj, got, err)
		}
		if _, err := DecodeTypedCBOR([]byte{0x80}, want); err == nil {
			t.Error("a list is no object")
		}
	}
}

// TestCBORIsRequested checks that CBOR is neither read nor written without WithCBOR.
func TestCBORIsRequested(t *testing.T) {
	r := request("/x", "Accept", CBOR)
	if _, err := Negotiate(r, Offer{}); err == nil || strings.Contains(err.Error(), CBOR) {
		t.Errorf("off: %v", err)
	}
	if _, err := BodyType(r.Context(), CBOR); err == nil || strings.Contains(err.Error(), CBOR) {
		t.Errorf("off: %v", err)
	}
	r = r.WithContext(WithCBOR(r.Context()))
	if m, err := NegotiateWatch(r, Offer{}); err != nil || m.Type != CBOR || m.WatchType() != cborSequence {
		t.Errorf("on: %v, %v", m, err)
	}
	if media, err := BodyType(r.Context(), CBOR+"; charset=x"); err != nil || media != CBOR {
		t.Errorf("on: %v, %v", media, err)
	}
	r.Header = http.Header{"Accept": {"text/html"}}
	if _, err := Negotiate(r, Offer{}); err == nil || !strings.HasSuffix(err.Error(), ", "+CBOR) {
		t.Errorf("on: %v", err)
	}
}
