package cel

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/decls"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel/fieldpath"
)

func arrayOf(items apiextensionsv1.JSONSchemaProps, rules ...string) *apiextensionsv1.JSONSchemaProps {
	p := &apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}}
	for _, r := range rules {
		p.XValidations = append(p.XValidations, apiextensionsv1.ValidationRule{Rule: r})
	}
	return p
}

func TestCheckOptions(t *testing.T) {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	dear := compileSpec(t, arrayOf(text, "self.all(x, x.contains('a string'))"))
	broken := compileSpec(t, arrayOf(text, "nope", "self.size() > 0"))
	path := field.NewPath("x")
	for _, c := range []struct {
		name   string
		root   *schema.Node
		o      CheckOptions
		errors int
	}{
		{"all costs", dear, CheckOptions{}, 3},
		{"costs of the schema only", dear, CheckOptions{SuppressPerExpressionCost: true}, 2},
		{"preexisting rules are checked, too", broken, CheckOptions{PreexistingRules: map[string]bool{"nope": true}}, 1},
		{"skip", broken, CheckOptions{Skip: func(path string) bool { return path == "x.properties[spec]" }}, 0},
		{"skip another place", broken, CheckOptions{Skip: func(path string) bool { return path == "x" }}, 1},
	} {
		if errs := Check(c.root, path, c.o); len(errs) != c.errors {
			t.Errorf("%s: got %q, want %d errors", c.name, errs, c.errors)
		}
	}
}

// TestEnvironmentsAgree checks that stored expressions may use everything that new ones may. With the libraries of
// Kubernetes 1.36 they agree; 1.37 adds functions that new expressions must not use.
func TestEnvironmentsAgree(t *testing.T) {
	added, stored := kubeEnvironments().NewExpressionsEnv(), kubeEnvironments().StoredExpressionsEnv()
	for name, f := range added.Functions() {
		g, ok := stored.Functions()[name]
		if !ok {
			t.Errorf("a new expression may use %s, a stored one may not", name)
			continue
		}
		for _, o := range f.OverloadDecls() {
			if !slices.ContainsFunc(g.OverloadDecls(), func(p *decls.OverloadDecl) bool { return p.ID() == o.ID() }) {
				t.Errorf("a new expression may use %s of %s, a stored one may not", o.ID(), name)
			}
		}
	}
	if a, b := len(added.Macros()), len(stored.Macros()); a != b {
		t.Errorf("%d macros in new expressions, %d in stored ones", a, b)
	}
}

// TestLaterFunctions checks that a rule with a function of Kubernetes 1.37 is refused, whatever libraries are linked.
func TestLaterFunctions(t *testing.T) {
	root := compileSpec(t, arrayOf(apiextensionsv1.JSONSchemaProps{Type: "integer"}, "self.includes(1)"))
	errs := Check(root, field.NewPath("x"), CheckOptions{})
	if len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), "undeclared reference to 'includes'") {
		t.Errorf("got %v, want an undeclared reference to 'includes'", errs)
	}
}

// FuzzRule checks that no text of a rule panics or takes long, neither in the check nor in the evaluation.
func FuzzRule(f *testing.F) {
	for _, seed := range []string{
		"self.a > 0", "self.l.all(x, x > 0)", "has(self.m.x)", "self.s.matches('a*')", "self.?s.orValue('') == ''",
		"[[[[1]]]] == []", "{'a': 1}.all(k, v, v > 0)", "self.s.format([1])", "((((((((((", "a.b.c.d", "'\\",
		"lists.range(5)",
		"self == oldSelf", "cel.bind(x, 1, x == 1)", "quantity('1')", "type(self)", "self.m + self.m", "dyn(self).x.y",
	} {
		f.Add(seed)
	}
	root := compileSpec(f,
		&apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"a": {Type: "integer"}, "s": {Type: "string", MaxLength: new(int64)},
			"l": *arrayOf(apiextensionsv1.JSONSchemaProps{Type: "integer"}),
			"m": {
				Type: "object",
				AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
					Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"},
				},
			},
		}})
	spec := map[string]any{"a": int64(1), "s": "text", "l": []any{int64(1), int64(2)}, "m": map[string]any{"k": "v"}}
	f.Fuzz(func(t *testing.T, rule string) {
		root := *root
		node := *root.Properties["spec"]
		node.Rules = apiextensionsv1.ValidationRules{{Rule: rule, MessageExpression: rule, FieldPath: rule}}
		root.Properties = map[string]*schema.Node{"spec": &node}
		start := time.Now()
		if errs := Check(&root, nil, CheckOptions{}); len(errs) > 0 {
			return
		}
		New(&root, true).Evaluate(context.Background(), resource(spec), resource(spec), nil)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("took %v", took)
		}
	})
}

func TestResolvePath(t *testing.T) {
	root := compileSpec(t,
		&apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"a-b": {Type: "string"}, "o'c": {Type: "string"},
			"m": {
				Type: "object",
				AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
					Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"},
				},
			},
			"open": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}},
		}}).Properties["spec"]
	for _, c := range []struct{ path, want string }{
		{".a-b", "a-b"}, {"['a-b']", "a-b"}, {`['o\'c']`, "o'c"}, {".m.x", "m[x]"}, {".m['x.y']", "m[x.y]"},
		{".open.x", "open[x]"},
		{".nope", "does not refer to a valid field"}, {".a-b.c", "does not refer to a valid field"},
		{".open.x.y", "does not refer to a valid field"},
		{"a-b", "expected [ or . but got: a-b"}, {".", "unexpected end of JSON path"},
		{"[", "unexpected end of JSON path"},
		{"[0]", "expected single quoted string but got 0"}, {"['a-b'", "expected ] but got "},
		{`['a\qb']`, `invalid string literal: invalid escape char \q`},
		{"['a-b", "expected single quoted string but got 'a-b"},
	} {
		path, _, err := fieldpath.Resolve(c.path, root)
		got := path.String()
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
	}
}

// TestManyRules holds that costs of a large schema are its own: a property without rules is never looked at.
func TestManyRules(t *testing.T) {
	wide := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, c := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		inner := wide.DeepCopy()
		inner.XValidations = nil
		wide.Properties[c] = apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{c: {Type: "string"}},
		}
	}
	wide.XValidations = apiextensionsv1.ValidationRules{{Rule: "has(self.a)"},
		{Rule: "has(self.a.a) && self.a.a == 'x'"}}
	root := compileSpec(t, &wide)
	s := newScope(typedNode{node: root.Properties["spec"]}, wide.XValidations)
	for _, r := range wide.XValidations {
		if _, err := s.compile(storedExpressions(), r.Rule, false, ruleRole); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.declared) > 2 {
		t.Errorf("declared %d types for rules that use one field: %v", len(s.declared), s.declared)
	}
}
