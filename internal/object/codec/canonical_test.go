package codec

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// canonical reports whether data is one value in AppendJSON's format.
func canonical(data []byte) bool {
	c := ReadCanonical(data)
	return c.Skip() && c.Done()
}

// TestCanonical checks that AppendJSON's output is canonical, except for values that Canonical does not examine.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{}`: true, `[]`: true, `""`: true, `0`: true, `-7`: true, `123456789012345678`: true,
		`null`: true, `true`: true,
		`{"a":[1,"b",{"c":false}],"b":{"a":null}}`: true,
		`"\"\\\b\f\n\r\t\u003c\u003e\u0026\u2028"`: true,
		`"Grüße 😀"`: true,
		// Numbers that may be written otherwise.
		`-0`: false, `01`: false, `1.0`: false, `1.5`: false, `1e3`: false, `1234567890123456789`: false, `-`: false,
		// White space, order, repetition.
		`{ }`: false, `[1, 2]`: false, `{"b":1,"a":2}`: false, `{"a":1,"a":2}`: false, `1 `: false,
		// Unnecessary escapes, and missing ones.
		`"\/"`: false, `"\u0041"`: false, `"\u003C"`: false, `"<"`: false, `"&"`: false, "\"\u2028\"": false,
		`"\ufffd"`: false, "\"\xff\"": false, "\"\n\"": false,
		// Names sort after unescaping.
		`{"\n":1}`: true, `{"\t":1,"\n":1}`: true, `{"\n":1,"\t":1}`: false, `{"\"":1,"!":1}`: false,
		`{"!":1,"\"":1}`: true, `{"\u003c":1,"=":1}`: true, `{"=":1,"\u003c":1}`: false, `{"\u003c":1,"a":1}`: true,
		`{"a\"1":1,"a\"2":1}`: true, `{"a\"2":1,"a\"1":1}`: false, `{"a\"":1,"a\"1":1}`: true,
		`{"a\"1":1,"a\"":1}`: false, `{"a\"1":1,"a\"1":2}`: false, `{"\u003c":1,"\u003e":1}`: true,
		`{"\u2028":1,"z":1}`: false, `{"z":1,"\u2028":1}`: true, `{"\\":1,"]":1}`: true, `{"[":1,"\\":1}`: true,
		// No JSON.
		``: false, `{`: false, `{"a"}`: false, `{"a":}`: false, `[1`: false, `[,]`: false, `{,}`: false, `[1,]`: false,
		`"`: false, `"\`: false, `nul`: false, `tru`: false, `{"a":1,}`: false, `1]`: false,
	} {
		if got := canonical([]byte(text)); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// FuzzCanonical checks that decoding and encoding do not change canonical input.
func FuzzCanonical(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,"b",{"c":false}],"b":{"a":null},"c":-12,"d":"x\u003c\n"}`, `["Grüße",{},[]]`, `1.5`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !canonical(data) {
			return
		}
		v, err := DecodeJSON(data)
		if err != nil {
			t.Fatalf("%q is no JSON: %v", data, err)
		}
		if again := AppendJSON(nil, v); string(again) != string(data) {
			t.Fatalf("%q becomes %q", data, again)
		}
	})
}

// TestMutated repeats FuzzCanonical with random changes.
func TestMutated(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	seed := []byte(`{"a":[1,"b",{"c":false}],"b":{"a":null,"é":10},"c":-12,"d":"x\u003c\n","e":["",true],"f\"":1,"f\u003c":2,"f\\":3}`)
	const bytes = `{}[]",:\0123456789-.eabcu<nfrt` + "\xc3\n "
	kept := 0
	for range 200_000 {
		data := slices.Clone(seed)
		for range 1 + r.IntN(3) {
			at := r.IntN(len(data))
			switch r.IntN(3) {
			case 0:
				data[at] = bytes[r.IntN(len(bytes))]
			case 1:
				data = slices.Delete(data, at, at+1)
			default:
				data = slices.Insert(data, at, bytes[r.IntN(len(bytes))])
			}
		}
		if !canonical(data) {
			continue
		}
		kept++
		v, err := DecodeJSON(data)
		if err != nil {
			t.Fatalf("%q is no JSON: %v", data, err)
		}
		if again := AppendJSON(nil, v); string(again) != string(data) {
			t.Fatalf("%q becomes %q", data, again)
		}
	}
	if kept < 1000 {
		t.Errorf("only %d of them were canonical", kept)
	}
}
