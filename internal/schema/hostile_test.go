package schema

import (
	"strings"
	"testing"
)

// TestHostile feeds objects that are large or deep on purpose. It ends soon, or the package's time limit ends it.
func TestHostile(t *testing.T) {
	const depth = 9000 // the decoder allows 10,000
	nested := strings.Repeat("[", depth) + strings.Repeat(`{"a":1},`, 100) + "{}" + strings.Repeat("]", depth)
	many := `"x"` + strings.Repeat(`,"y"`, 300000)
	s := compileJSON(t, `{"type":"object","properties":{"pruned":{"type":"array"},"deep":{"type":"array","x-kubernetes-preserve-unknown-fields":true},
		"set":{"type":"array","x-kubernetes-list-type":"set","items":{"x-kubernetes-preserve-unknown-fields":true}},
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
}
