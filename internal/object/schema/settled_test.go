package schema

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

const settledSchema = `{"type":"object","properties":{
	"spec":{"type":"object","default":{},"properties":{
		"text":{"type":"string","default":"t"},"count":{"type":"integer"},
		"maybe":{"type":"string","nullable":true,"default":"m"},
		"list":{"type":"array","items":{"type":"object","properties":{"key":{"type":"string"},"n":{"type":"integer","default":1}}}},
		"lists":{"type":"array","items":{"type":"array"}},
		"loose":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}},
		"kept":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object"}},
		"map":{"type":"object","additionalProperties":{"type":"object","default":{},"properties":{"x":{"type":"string","default":"x"}}}},
		"any":{"type":"object","additionalProperties":true},
		"none":{"type":"object"}}},
	"status":{"type":"object","properties":{"phase":{"type":"string"}}}}}`

// settledObject returns an object with a spec that ends with the given fields, after text and maybe.
func settledObject(spec string) string {
	return `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"annotations":{"a":"b"},"finalizers":["f"],` +
		`"generation":1,"managedFields":[{"fieldsV1":{"f:spec":{"k:{\"a\":1}":{},"k:{\"a\":2}":{}}},"manager":"m"}],"name":"n","uid":"u"},"spec":{` +
		spec + `}}`
}

// settledSlowly computes the result that Settled predicts.
func settledSlowly(t testing.TB, s *Schema, raw string) bool {
	t.Helper()
	v, err := codec.DecodeJSON([]byte(raw))
	obj, ok := v.(map[string]any)
	if err != nil || !ok || obj["apiVersion"] != "example.com/v1" || obj["kind"] != "Thing" {
		return false
	}
	if err := SalvageMetadata(obj); err != nil {
		return false
	}
	meta, _ := obj["metadata"].(map[string]any)
	if generation, _ := meta["generation"].(int64); generation == 0 {
		return false
	}
	s.NormalizeStored(obj)
	return string(codec.AppendJSON(nil, obj)) == raw
}

func TestSettled(t *testing.T) {
	t.Parallel()
	s := compileJSON(t, settledSchema, Options{})
	const usual = `"maybe":"m","text":"t"`
	for raw, want := range map[string]bool{
		settledObject(usual):                                            true,
		settledObject(`"count":3,` + usual):                             true,
		settledObject(`"maybe":null,"text":"t"`):                        true,
		settledObject(`"list":[{"key":"k","n":1}],` + usual):            true,
		settledObject(`"lists":[[1],[[]],[{}]],` + usual):               true,
		settledObject(`"loose":{"a":{"b":""},"z":{"y":null}},` + usual): true,
		settledObject(`"map":{"a":{"x":"y"}},` + usual):                 true,
		settledObject(`"any":{"a":[{}]},` + usual):                      true,
		settledObject(`"maybe":"m","none":{},"text":"t"`):               true,
		// Names with escapes are looked up unescaped, or not at all.
		settledObject(`"map":{"\"":{"x":"y"}},` + usual): false,
		// A default is missing.
		settledObject(`"maybe":"m"`):                            false,
		settledObject(`"list":[{"key":"k"}],` + usual):          false,
		settledObject(`"map":{"a":{}},` + usual):                false,
		strings.Replace(settledObject(""), `,"spec":{}`, "", 1): false,
		// A field is dropped.
		settledObject(`"a":1,` + usual):                                                         false,
		settledObject(`"count":null,` + usual):                                                  false,
		settledObject(`"list":[{"a":1,"n":1}],` + usual):                                        false,
		settledObject(`"lists":[[{"a":1}]],` + usual):                                           false,
		settledObject(`"loose":{"a":{"c":""}},` + usual):                                        false,
		settledObject(`"any":{"a":{"b":1}},` + usual):                                           false,
		settledObject(`"maybe":"m","none":{"a":1},"text":"t"`):                                  false,
		settledObject(`"maybe":"m","none":["a",{"b":1}],"text":"t"`):                            false,
		strings.Replace(settledObject(usual), `"kind":"Thing",`, `"kind":"Thing","loss":1,`, 1): false,
		// Another kind or version, or repaired metadata.
		strings.Replace(settledObject(usual), "Thing", "Other", 1):                       false,
		strings.Replace(settledObject(usual), "/v1", "/v2", 1):                           false,
		strings.Replace(settledObject(usual), `"generation":1,`, ``, 1):                  false,
		strings.Replace(settledObject(usual), `"generation":1,`, `"generation":0,`, 1):   false,
		strings.Replace(settledObject(usual), `"generation":1,`, `"generation":"1",`, 1): false,
		strings.Replace(settledObject(usual), `{"a":"b"}`, `{"a":1}`, 1):                 false,
		strings.Replace(settledObject(usual), `["f"]`, `[1]`, 1):                         false,
		strings.Replace(settledObject(usual), `"uid":"u"`, `"uid":null`, 1):              false,
		// Another format.
		settledObject(usual) + " ":                                              false,
		strings.Replace(settledObject(usual), `"spec":`, `"spec": `, 1):         false,
		settledObject(`"text":"t","maybe":"m"`):                                 false,
		`{"apiVersion":"example.com/v1","kind":"Thing","spec":{` + usual + `}}`: false,
		`[]`: false, `{}`: false, ``: false,
	} {
		if got := s.Settled([]byte(raw), "example.com/v1", "Thing"); got != want {
			t.Errorf("%s: %v, want %v", raw, got, want)
		}
		if got := settledSlowly(t, s, raw); want && !got {
			t.Errorf("%s: is changed by a read", raw)
		}
	}
	kept := settledObject(`"kept":[{"a":1}],` + usual)
	if !settledSlowly(t, s, kept) || s.Settled([]byte(kept), "example.com/v1", "Thing") {
		t.Error("what a list preserves is left to NormalizeStored")
	}
	loose := compileJSON(t, settledSchema, Options{PreserveUnknownFields: true})
	if loose.Settled([]byte(settledObject(usual)), "example.com/v1", "Thing") {
		t.Error("definitions of v1beta1 that keep everything are left to NormalizeStored")
	}
	embedded := compileJSON(t, `{"properties":{"spec":{"type":"object","x-kubernetes-embedded-resource":true,
		"x-kubernetes-preserve-unknown-fields":true}}}`, Options{})
	if embedded.Settled([]byte(settledObject(`"metadata":{"name":"","other":1}`)), "example.com/v1", "Thing") {
		t.Error("embedded resources are left to NormalizeStored")
	}
	// Settled must not overflow the stack.
	deep := settledObject(`"lists":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `,` + usual)
	if s.Settled([]byte(deep), "example.com/v1", "Thing") {
		t.Error("a million lists in lists are looked into")
	}
}

// TestSettledAtRandom removes, duplicates and exchanges random pieces of an object, and checks that a read does not
// change objects that Settled accepts.
func TestSettledAtRandom(t *testing.T) {
	t.Parallel()
	s := compileJSON(t, settledSchema, Options{})
	pieces := []string{
		`null`, `{}`, `[]`, `1`, `-1`, `"x"`, `true`, `{"a":1}`, `{"x":"y"}`, `[{"n":1}]`, `[null]`, `{"b":"c"}`,
		`,`, `:`,
		`"text"`, `"list"`, `"a"`, `"zz"`, `{"key":"k","n":2}`, `0.5`, `"generation"`, `"spec"`,
	}
	whole := settledObject(`"any":{"a":1},"count":3,"list":[{"key":"k","n":1},{"n":2}],"loose":{"a":{"b":""},"z":{}},` +
		`"map":{"a":{"x":"y"}},"maybe":null,"none":{},"text":"t"`)
	tokens := tokenize(whole)
	r := rand.New(rand.NewPCG(3, 4))
	settled := 0
	for range 100_000 {
		cut := slices.Clone(tokens)
		for range 1 + r.IntN(3) {
			at := r.IntN(len(cut))
			switch r.IntN(4) {
			case 0:
				cut[at] = pieces[r.IntN(len(pieces))]
			case 1:
				cut = slices.Delete(cut, at, min(len(cut), at+1+r.IntN(4)))
			case 2:
				cut = slices.Insert(cut, at, pieces[r.IntN(len(pieces))])
			default:
				other := r.IntN(len(cut))
				cut[at], cut[other] = cut[other], cut[at]
			}
		}
		raw := strings.Join(cut, "")
		if s.Settled([]byte(raw), "example.com/v1", "Thing") {
			if settled++; !settledSlowly(t, s, raw) {
				t.Fatalf("%s: a read changes it", raw)
			}
		}
	}
	if settled < 1000 {
		t.Errorf("only %d of them were settled", settled)
	}
}

// tokenize cuts JSON into its tokens.
func tokenize(text string) (tokens []string) {
	d := json.NewDecoder(strings.NewReader(text))
	for at := int64(0); ; {
		if _, err := d.Token(); err != nil {
			return tokens
		}
		piece := text[at:d.InputOffset()]
		if at = d.InputOffset(); len(piece) > 1 && (piece[0] == ',' || piece[0] == ':') {
			tokens, piece = append(tokens, piece[:1]), piece[1:]
		}
		tokens = append(tokens, piece)
	}
}

// BenchmarkSettled compares the saved work with the cost of the check.
func BenchmarkSettled(b *testing.B) {
	s := compileJSON(b, settledSchema, Options{})
	item := `{"key":"some words that are as long as words in objects are","n":17}`
	raw := []byte(settledObject(`"list":[` + strings.Repeat(item+",", 60) + item + `],"maybe":"m","text":"t"`))
	b.Run("settled", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			if !s.Settled(raw, "example.com/v1", "Thing") {
				b.Fatal("is not settled")
			}
		}
	})
	b.Run("decoded", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			if !settledSlowly(b, s, string(raw)) {
				b.Fatal("is not settled")
			}
		}
	})
}
