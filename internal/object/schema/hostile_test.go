package schema

import (
	"strings"
	"testing"
)

// TestHostile uses objects that are large or deep on purpose. It ends soon, or fails at the package's time limit.
func TestHostile(t *testing.T) {
	const depth = 9000 // the decoder allows 10,000
	nested := strings.Repeat("[", depth) + strings.Repeat(`{"a":1},`, 100) + "{}" + strings.Repeat("]", depth)
	many := `"x"` + strings.Repeat(`,"y"`, 300000)
	s := compileJSON(t,
		`{"type":"object","properties":{"pruned":{"type":"array"},"deep":{"type":"array","x-kubernetes-preserve-unknown-fields":true},
		"set":{"type":"array","x-kubernetes-list-type":"set","items":{"x-kubernetes-preserve-unknown-fields":true}},
		"lists":{"type":"array","items":{"type":"array","items":{"type":"array","default":[[]],"items":{"type":"string"}}}},
		"recursive":{"anyOf":[{"items":{"items":{"items":{"anyOf":[{"minItems":2},{"maxItems":0}]}}}},{"items":{"items":{"maxItems":0}}}],"type":"array","items":{"type":"array","items":{"type":"array","items":{"x-kubernetes-preserve-unknown-fields":true}}}},
		"texts":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","maxLength":0,"pattern":"^(a+)+$"}}}}`, Options{})
	for _, text := range []string{
		`{"pruned":` + nested + `}`,
		`{"deep":` + nested + `}`,
		`{"set":[` + nested + `,` + nested + `]}`,
		`{"texts":[` + many + `]}`,
		`{"texts":["` + strings.Repeat("a", 1<<20) + `!"]}`,
	} {
		obj := parse(t, text)
		if _, err := s.NormalizeRequest(obj); err != nil {
			t.Error(err)
		}
		s.Validate(obj, nil)
		s.Validate(obj, obj)
	}

	// 3 MB, the maximum of a request, of nothing but brackets.
	brackets := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	huge := parse(t, `{"pruned":[`+strings.Repeat(brackets+",", 3<<20/len(brackets)-1)+brackets+"]}")["pruned"]
	for _, name := range []string{"pruned", "deep", "lists", "recursive"} {
		obj := map[string]any{name: huge}
		if _, err := s.NormalizeRequest(obj); err != nil {
			t.Error(err)
		}
		for _, err := range s.Validate(obj, nil) {
			if len(err.Error()) > 1000 {
				t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
			}
		}
		s.Validate(obj, obj)
	}
}
