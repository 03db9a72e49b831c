package codec

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestStored(t *testing.T) {
	g := rand.New(rand.NewPCG(3, 4))
	for _, fields := range [][]string{nil, {"metadata"}, {"aaa"}, {"zzz"}, {"aaa", "metadata", "zzz"}, {"aaa", "zzz"},
		{"metadata", "zzz"}} {
		for _, inner := range [][]string{nil, {"a"}, {"uid"}, {"name", "uid"}, {"resourceVersion"},
			{"name", "resourceVersion", "uid"}, {"name", "resourceVersion"}, {"resourceVersion", "uid"}} {
			obj := map[string]any{}
			for _, name := range fields {
				obj[name] = randomValue(g, 2)
			}
			if _, ok := obj["metadata"]; ok {
				meta := map[string]any{}
				for _, name := range inner {
					meta[name] = "x"
				}
				obj["metadata"] = meta
			}
			before := CloneObject(obj)
			s := EncodeStored(obj)
			if !reflect.DeepEqual(obj, before) {
				t.Fatalf("%v became %v", before, obj)
			}
			want := CloneObject(obj)
			meta, _ := want["metadata"].(map[string]any)
			delete(meta, "resourceVersion")
			if string(s.JSON) != string(AppendJSON(nil, want)) {
				t.Errorf("%v: stored %s", obj, s.JSON)
			}
			if meta == nil {
				meta = map[string]any{}
				want["metadata"] = meta
			}
			meta["resourceVersion"] = "42"
			served := AppendJSON(nil, want)
			if string(s.WithRevision(42)) != string(served) {
				t.Errorf("%v: served %s, want %s", obj, s.WithRevision(42), served)
			}
			if !s.Is(served, 42) || s.Is(served, 43) || s.Is(served, 4) || s.Is(served[1:], 42) ||
				s.Is(append(served, ' '), 42) {
				t.Errorf("%v: Is", obj)
			}
		}
	}
}

func TestCloneAndEqual(t *testing.T) {
	g := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		a, b := randomValue(g, 3), randomValue(g, 1)
		c := Clone(a)
		if !reflect.DeepEqual(a, c) || !Equal(a, c) {
			t.Fatalf("%v, %v", a, c)
		}
		if got, want := Equal(a, b), reflect.DeepEqual(a, b); got != want {
			t.Fatalf("%v, %v: %v", a, b, got)
		}
		if m, ok := c.(map[string]any); ok && len(m) > 0 {
			m["more"] = true
			if Equal(a, c) {
				t.Fatal("the copy is the original")
			}
		}
	}
	if Equal(int64(1), 1.0) || Equal([]any{}, nil) || !Equal([]any(nil), []any{}) {
		t.Error("edges")
	}
}
