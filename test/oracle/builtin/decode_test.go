package builtin

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/randfill"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// TestRoundTrip decodes random values of the Go types with Decode, and compares the result with encoding/json's. The
// schema must have every field of them.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, r := range kinds.Resources() {
		if r.Secondary {
			continue
		}
		t.Run(r.Kind, func(t *testing.T) {
			t.Parallel()
			sch, err := r.Storage.Schema()
			if err != nil {
				t.Fatal(err)
			}
			for seed := range int64(50) {
				typed := r.Storage.New()
				filler(seed).Fill(typed)
				setKind(typed, r)
				want := encode(t, typed)
				if unknown := sch.Normalize(decodeJSON(t, want)); len(unknown) > 0 {
					t.Fatalf("seed %d: the schema does not know %q in\n%s", seed, unknown, want)
				}
				obj := decodeJSON(t, want)
				if unknown, err := r.Strategy.Decode(obj); err != nil || len(unknown) > 0 {
					t.Fatalf("seed %d: %v, unknown %q in\n%s", seed, err, unknown, want)
				}
				got := codec.AppendJSON(nil, obj)
				if g, w := decodeJSON(t, got), decodeJSON(t, want); !reflect.DeepEqual(g, w) {
					t.Fatalf("seed %d:\ngot  %s\nwant %s", seed, got, codec.AppendJSON(nil, w))
				}
			}
		})
	}
}

// TestDecodeErrors replaces a value in a valid object by one of another type, and expects the error of decoding the
// object's JSON into the Go type.
func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	wrong := []any{"text", int64(-7), 1.5, int64(1) << 40, true, []any{"x"}, map[string]any{"x": "y"}}
	for _, r := range kinds.Resources() {
		if r.Secondary || r.Kind == "CustomResourceDefinition" {
			continue // a definition decodes in another way; package crd compares that
		}
		t.Run(r.Kind, func(t *testing.T) {
			t.Parallel()
			failed := 0
			for seed := range int64(150) {
				rnd := rand.New(rand.NewSource(seed))
				typed := r.Storage.New()
				filler(seed).Fill(typed)
				setKind(typed, r)
				obj := decodeJSON(t, encode(t, typed))
				replace(rnd, obj, wrong[rnd.Intn(len(wrong))])
				doc := codec.AppendJSON(nil, obj)
				want := kjson.UnmarshalCaseSensitivePreserveInts(doc, r.Storage.New())
				_, got := r.Strategy.Decode(obj)
				if text(got) != text(want) {
					t.Fatalf("seed %d:\ngot  %s\nwant %s\n%s", seed, text(got), text(want), doc)
				}
				if want != nil {
					failed++
				}
			}
			if failed < 20 {
				t.Errorf("only %d of 150 objects were wrong", failed)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// replace puts v in the place of a random value below obj.
func replace(rnd *rand.Rand, obj map[string]any, v any) {
	keys := make([]string, 0, len(obj))
	for _, k := range sortedKeys(obj) {
		if k != "apiVersion" && k != "kind" {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return
	}
	key := keys[rnd.Intn(len(keys))]
	if below, ok := obj[key].(map[string]any); ok && len(below) > 0 && rnd.Intn(4) > 0 {
		replace(rnd, below, v)
		return
	}
	obj[key] = v
}

func setKind(typed any, r *catalog.Resource) {
	v := reflect.ValueOf(typed).Elem()
	v.FieldByName("Kind").SetString(r.Kind)
	v.FieldByName("APIVersion").SetString(r.APIVersion(r.Storage))
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decodeJSON(t *testing.T, data []byte) map[string]any {
	t.Helper()
	v, err := codec.DecodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

// filler makes values that survive a trip through JSON: times of whole (micro)seconds in UTC, no nested schemas.
func filler(seed int64) *randfill.Filler {
	second := func(c randfill.Continue) time.Time { return time.Unix(c.Int63n(4e9), 0).UTC() }
	return randfill.NewWithSeed(seed).NilChance(.4).NumElements(0, 3).Funcs(
		func(v *metav1.Time, c randfill.Continue) { v.Time = second(c) },
		func(v *metav1.MicroTime, c randfill.Continue) {
			v.Time = second(c).Add(time.Duration(c.Int63n(1e6)) * time.Microsecond)
		},
		func(v *metav1.FieldsV1, c randfill.Continue) { v.Raw = []byte(`{"f:x":{}}`) },
		func(v *runtime.RawExtension, c randfill.Continue) { v.Raw = []byte(`{"a":["b"]}`) },
		func(v *types.UID, c randfill.Continue) { *v = types.UID(c.String(10)) },
		func(v *apiextensionsv1.JSONSchemaProps, c randfill.Continue) {
			v.Type, v.Description = "object", c.String(5)
			v.Properties = map[string]apiextensionsv1.JSONSchemaProps{"x": {Type: "string"}}
		},
	)
}
