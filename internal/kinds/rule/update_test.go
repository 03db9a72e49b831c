package rule

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/object"
)

func TestCountChange(t *testing.T) {
	t.Parallel()
	list := func(values ...any) object.Object {
		return object.Object{"a": object.Object{"list": values}, "n": int64(1)}
	}
	null := object.Object{"a": object.Object{"list": nil}, "n": int64(1)}
	absent := object.Object{"a": object.Object{}, "n": int64(1)}
	for _, tc := range []struct {
		name     string
		now, was any
		changed  bool
	}{
		{"the same", list("x"), list("x"), false},
		{"another value", list("x"), list("y"), true},
		{"a longer list", list("x"), list("x", "y"), true},
		{"null and empty", null, list(), false},
		{"empty and null", list(), null, false},
		{"absent and empty", absent, list(), false},
		{"absent and null", absent, null, false},
		{"null and not empty", null, list("x"), true},
		{"not empty and absent", list("x"), absent, true},
		{"an object and none", object.Object{"a": object.Object{}}, object.Object{}, true},
		{"a list and an object", object.Object{"a": []any{}}, object.Object{"a": object.Object{}}, true},
		{"a number and a text", object.Object{"a": int64(1)}, object.Object{"a": "1"}, true},
	} {
		obj := object.Object{"metadata": object.Object{}, "spec": tc.now}
		CountChange(obj, object.Object{"metadata": object.Object{"generation": int64(4)}, "spec": tc.was})
		if got := object.Map(obj, "metadata")["generation"] != nil; got != tc.changed {
			t.Errorf("%s: changed %t", tc.name, got)
		}
	}
}
