package object_test

import (
	"reflect"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object"
)

func TestRead(t *testing.T) {
	obj := object.Object{
		"s": "text", "n": int64(7), "b": true, "null": nil, "l": []any{"a", object.Object{"x": "y"}},
		"texts": []any{"a", "b"},
		"o":     object.Object{"s": "inner", "o": object.Object{"n": int64(0), "mixed": int64(1), "s": "z"}},
	}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"string", object.String(obj, "s"), "text"},
		{"string below", object.String(obj, "o", "s"), "inner"},
		{"string of a number", object.String(obj, "n"), ""},
		{"string below a string", object.String(obj, "s", "s"), ""},
		{"string below null", object.String(obj, "null", "s"), ""},
		{"string of nil", object.String(nil, "s"), ""},
		{"map", object.Map(obj, "o", "o")["s"], "z"},
		{"map of a list", object.Map(obj, "l") == nil, true},
		{"true", object.True(obj, "b"), true},
		{"true of null", object.True(obj, "null"), false},
		{"list", len(object.List(obj, "l")), 2},
		{"list of an object", object.List(obj, "o") == nil, true},
		{"strings", object.Strings(obj, "texts"), []string{"a", "b"}},
		{"strings of a mixed list", object.Strings(obj, "l") == nil, true},
		{"string map", object.StringMap(obj, "o", "o"), map[string]string{"n": "", "mixed": "", "s": "z"}},
		{"string map of null", object.StringMap(obj, "null") == nil, true},
		{"objects", object.Objects(obj["l"]), []object.Object{{"x": "y"}}},
		{"objects of a string", len(object.Objects("a")), 0},
		{"keys", object.Keys(object.Map(obj, "o")), []string{"o", "s"}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if n, ok := object.Int(obj, "o", "o", "n"); n != 0 || !ok {
		t.Errorf("a zero reads as %d, %v", n, ok)
	}
	if n, ok := object.Int(obj, "s"); n != 0 || ok {
		t.Errorf("a string reads as the number %d, %v", n, ok)
	}
}

func TestChange(t *testing.T) {
	obj := object.Object{"metadata": nil}
	object.Meta(obj)["name"] = "x"
	object.SetFinalizers(obj, []string{"a/b", "c/d"})
	if got := object.Finalizers(obj); !reflect.DeepEqual(got, []string{"a/b", "c/d"}) {
		t.Errorf("finalizers: %v", got)
	}
	object.SetFinalizers(obj, nil)
	object.SetOrDelete(obj, "gone", 1, false)
	object.SetOrDelete(obj, "here", 1, true)
	if want := (object.Object{"metadata": object.Object{"name": "x"}, "here": 1}); !reflect.DeepEqual(obj, want) {
		t.Errorf("%v, want %v", obj, want)
	}
	if object.Finalizers(nil) != nil {
		t.Error("nil has finalizers")
	}
}
