package catalog

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestTrim counts how often schemas are compiled, while some are used and some are not.
func TestTrim(t *testing.T) {
	t.Parallel()
	compiled := map[string]int{}
	kind := func(name string, definition Definition) *Resource {
		v := &Version{Name: "v1", Served: true, Source: func() (*apiextensionsv1.JSONSchemaProps, error) {
			compiled[name]++
			return &apiextensionsv1.JSONSchemaProps{Type: "object"}, nil
		}}
		return &Resource{
			Group: "a.b", Plural: name, Kind: name, Served: true, Versions: []*Version{v}, Storage: v,
			Definition: definition,
		}
	}
	hot, cold := kind("hot", Definition{Name: "hot.a.b"}), kind("cold", Definition{Name: "cold.a.b"})
	builtin := kind("builtin", Definition{})
	c := New(hot, cold, builtin)
	use := func(r *Resource) {
		t.Helper()
		if _, err := r.Storage.Schema(); err != nil {
			t.Fatal(err)
		}
		r.Storage.Derived("x", func() any { return 1 })
	}
	use(hot)
	use(cold)
	use(builtin)
	expect := func(tight bool, want int) {
		t.Helper()
		if got := c.Trim(tight); got != want {
			t.Errorf("dropped %d, want %d", got, want)
		}
	}
	expect(true, 0) // all have just been used
	for range idleRounds - 1 {
		use(hot)
		expect(false, 0)
	}
	use(hot)
	expect(false, 1) // cold
	expect(true, 1)  // hot, once it is unused for a round
	expect(true, 0)
	use(cold)
	use(hot)
	use(builtin)
	if compiled["hot"] != 2 || compiled["cold"] != 2 || compiled["builtin"] != 1 {
		t.Errorf("compiled %v", compiled)
	}
	hot.Storage.Drop()
	hot.Storage.Derived("only", func() any { return 1 })
	expect(false, 0)
	expect(true, 2)
}
