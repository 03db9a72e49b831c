package cel

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/format"
)

// TestLoopsEnd checks that loops over lists and maps stop when the request ends, though they have begun.
func TestLoopsEnd(t *testing.T) {
	ended := make(chan struct{})
	close(ended)
	s, err := schema.Compile(&apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"list": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{
				Schema: &apiextensionsv1.JSONSchemaProps{Type: "integer"},
			}},
			"map": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
				Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"},
			}},
		},
	}, schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := typedNode{node: s.Root()}
	for _, source := range []string{
		"self.list.all(a, a < 1)", "self.list.exists(a, a > 1)", "self.list.map(a, a + 1).size() > 0",
		"self.list.filter(a, a > 1).size() == 0", "self.list.exists_one(a, a > 1)",
		"self.map.all(k, k != 'b')", "[1].all(a, self.list.all(b, b < a))",
	} {
		condition, err := newScope(at, nil).compile(storedExpressions(), source, false, ruleRole)
		if err != nil {
			t.Fatal(err)
		}
		self := map[string]any{"list": make([]any, 3*lookEvery), "map": map[string]any{}}
		for i := range 3 * lookEvery {
			self["list"].([]any)[i] = int64(0)
			self["map"].(map[string]any)[fmt.Sprint("k", i)] = "v"
		}
		for _, done := range []chan struct{}{nil, ended} {
			vars := &activation{self: valueOf(self, at), done: done}
			_, err := run(condition.program, vars)
			if stopped := err != nil && strings.Contains(err.Error(), "interrupted"); stopped != (done != nil) {
				t.Errorf("%s, ended %v: %v", source, done != nil, err)
			}
		}
	}
}

// TestPatternsOfRules takes the patterns in rules out of a budget.
func TestPatternsOfRules(t *testing.T) {
	const large = "'" + `(a{100}){10}b{1000}` + "'"
	long := "'" + strings.Repeat("a{1000}", 3000) + "'"
	for source, ok := range map[string]bool{
		"self.matches(" + large + ")": true, "self.matches(" + long + ")": true,
		"self.matches(" + long + ") && self.matches(" + long + ")":                                     true,
		"self.matches(" + long + ") || self.find('" + strings.Repeat("b{1000}", 900) + "') == ''":      false,
		"self.matches(" + long + ") || [" + long + "].exists(a, a == 'b{1000}')":                       true,
		"self.findAll(" + long + ", 3) == [] || self.matches('" + strings.Repeat("b{900}", 900) + "')": false,
		"self.matches(": true, // compiling reports it
	} {
		if err := takePatterns(new(format.Patterns), source); (err == nil) != ok {
			t.Errorf("%.50s: %v", source, err)
		}
	}
}
