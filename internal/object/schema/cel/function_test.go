package cel

import (
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

func TestFunction(t *testing.T) {
	for _, test := range []struct {
		source string
		values []any
		want   string // JSON, or the beginning of an error
	}{
		{"value + 1", []any{int64(1)}, "2"},
		{"value / 2.0", []any{float64(3)}, "1.5"},
		{"values[0] + '-' + values[1]", []any{"a", "b"}, `"a-b"`},
		{"value.split(',')", []any{"a,b"}, `["a","b"]`},
		{"{'a': value}", []any{true}, `{"a":true}`},
		{"value.map(x, x * 2)", []any{[]any{int64(1), int64(2)}}, "[2,4]"},
		{"value.a.b", []any{map[string]any{"a": map[string]any{"b": "x"}}}, `"x"`},
		{"values[1] == null", []any{"a", nil}, "true"},
		{"value.a", []any{map[string]any{}}, "error: no such key: a"},
		{"{1: value}", []any{"a"}, "error: the result is not a JSON value, or too large"},
		{"value.map(x, value.map(y, value.map(z, 1)))", []any{many(200)}, "error: operation cancelled: actual cost limit exceeded"},
		{"unknown(value)", nil, "compile: ERROR"},
		{strings.Repeat("1 + ", 4000) + "1", nil, "compile: the expression has 16001 bytes"},
	} {
		f, err := NewFunction(test.source)
		got := ""
		if err != nil {
			got = "compile: " + err.Error()
		} else if v, err := f.Call(test.values); err != nil {
			got = "error: " + err.Error()
		} else {
			got = string(codec.AppendJSON(nil, v))
		}
		if got != test.want && !(strings.Contains(test.want, ": ") && strings.HasPrefix(got, test.want)) {
			t.Errorf("%.60s gives %s, want %s", test.source, got, test.want)
		}
	}
}

func many(n int) (out []any) {
	for range n {
		out = append(out, int64(1))
	}
	return out
}
