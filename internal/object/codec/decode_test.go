package codec

import (
	"reflect"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
)

// documents are seeds and cases for every test that decodes.
var documents = []string{
	``, ` `, `null`, `true`, `false`, `tru`, `nul`, `0`, `-0`, `-`, `01`, `-01`, `1.`, `.5`, `1.0`, `1.5e3`, `1e5`,
	`1E-7`, `1e`, `1e+`,
	`9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`, `1e400`,
	`{"a":1e400}`, `123456789012345678901234567890`,
	`""`, `"a"`, `"a`, `"\n\t\"\\\/\b\f\r"`, `"\x"`, `"\u00e9"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`,
	`"\ud83d\u0041"`, `"\udc00"`, `"\u12"`, `"\u12g4"`,
	"\"\x01\"", "\"\x7f\"", "\"caf\xc3\xa9\"", "\"bad \xff\xfe utf8\"", "\"\xe2\x82\"",
	"\"long enough to leave the word loop \\u0041 and go on\"",
	`[]`, `[1,2,3]`, `[1,]`, `[,1]`, `[1 2]`, `[[[]]]`, `[`, `]`, ` [ 1 , "x" , null ] `,
	`{}`, `{"a":1}`, `{"a":1,"a":2}`, `{"a":{"b":[1,{"c":null}]}}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1,}`, `{,}`,
	`{"a":1}}`, `{"a":1} x`, `{"":{"":{}}}`,
	`{"kind":"A","apiVersion":"b/v1","metadata":{"name":"x","labels":{"a":"b"}},"spec":{"n":1,"f":1.5,"l":[true,false]}}`,
	"\ufeff{}", "{\"a\":1}\n\r\t ", "\v{}", `'a'`, `NaN`, `Infinity`,
}

func TestDecodeJSONMatchesLibrary(t *testing.T) {
	for _, doc := range append(documents, strings.Repeat("[", 10000)+strings.Repeat("]", 10000),
		strings.Repeat("[", 10001)+strings.Repeat("]", 10001),
		strings.Repeat(`{"a":`, 10000)+"1"+strings.Repeat("}", 10000), strings.Repeat(`{"a":`, 10001)+"1"+
			strings.Repeat("}", 10001)) {
		compareDecoders(t, []byte(doc))
	}
}

func FuzzDecodeJSON(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, data []byte) { compareDecoders(t, data) })
}

func compareDecoders(t *testing.T, data []byte) {
	t.Helper()
	var want any
	wantErr := kjson.UnmarshalCaseSensitivePreserveInts(data, &want)
	got, gotErr := DecodeJSON(data)
	if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
		t.Fatalf("%.80q: error %v, library says %v", data, gotErr, wantErr)
	}
	if wantErr == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("%.80q: %#v, library decodes %#v", data, got, want)
	}
	// The decoder and the library must agree before the library provides the error's text, too.
	_, repeated, err := decode(data)
	if err != nil {
		return
	}
	strict, _ := kjson.UnmarshalStrict(data, &want)
	if repeated != (len(strict) > 0) {
		t.Fatalf("%.80q: duplicates %v, library finds %v", data, repeated, strict)
	}
}

func TestDecodeJSONIsNotThePool(t *testing.T) {
	first, err := DecodeJSON([]byte(`{"a":[1,{"b":"c"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := DecodeJSON([]byte(`{"x":[9,{"y":"z"}],"broken":[`)); err == nil {
			t.Fatal("broken document decoded")
		}
		if _, err := DecodeJSON([]byte(`{"x":[9,8,7,6,{"y":"z"}]}`)); err != nil {
			t.Fatal(err)
		}
	}
	if want := map[string]any{"a": []any{int64(1), map[string]any{"b": "c"}}}; !reflect.DeepEqual(first, want) {
		t.Fatalf("changed by later calls: %#v", first)
	}
}
