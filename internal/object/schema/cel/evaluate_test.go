package cel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel/maxcost"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel/rulegen"
)

func TestNoRules(t *testing.T) {
	root := compileSpec(t, &apiextensionsv1.JSONSchemaProps{Type: "string"})
	if e, err := Compile(root); e != nil || err != nil {
		t.Errorf("got %v, %v, want nothing", e, err)
	}
	if errs := Check(root, nil, CheckOptions{}); errs != nil {
		t.Errorf("got %v", errs)
	}
}

// TestBudget checks that an object with estimates above the budget is evaluated at its real cost, and that the real
// cost can end the evaluation.
func TestBudget(t *testing.T) {
	items := apiextensionsv1.JSONSchemaProps{Type: "string"}
	items.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.size() < 5"},
		{Rule: "self.matches('^[a-z ]*$')", Message: "pattern"}}
	rules := New(compileSpec(t, arrayOf(items, "self.all(a, self.all(b, a + b != 'x'))")), true)
	for _, c := range []struct {
		n, size int
		want    string // text of the last error
	}{
		{2, 2, ""},
		{2, 9, "failed rule: self.size() < 5"},
		{400, 2,
			"'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: self.all(a, self.all(b, a + b != 'x'))"},
		{240, 30_000, "operation cancelled: actual cost limit exceeded"},
	} {
		spec := make([]any, c.n)
		for i := range spec {
			spec[i] = strings.Repeat("a", c.size)
		}
		obj := resource(spec)
		got := texts(rules.Evaluate(context.Background(), obj, nil, nil))
		last := ""
		if len(got) > 0 {
			last = got[len(got)-1]
		}
		if !strings.Contains(last, c.want) || (c.want == "") != (last == "") {
			t.Errorf("%d of %d: got %q, want %q", c.n, c.size, last, c.want)
		}
		counted, left := rules.EvaluateAt(nil, obj, nil, EvalOptions{})
		if !slices.Equal(got, texts(counted)) {
			t.Errorf("%d of %d:\nuncounted %q\ncounted   %q", c.n, c.size, got, texts(counted))
		}
		if over := strings.Contains(c.want, "cancelled"); over != (left < 0) {
			t.Errorf("%d of %d: %d left", c.n, c.size, left)
		}
	}
}

// TestObjectBudget spends the budget of an object by many cheap calls.
func TestObjectBudget(t *testing.T) {
	longest := int64(780)
	items := apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: &longest}
	items.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.contains(self)"}, {Rule: "self.contains(self)"}}
	rules := New(compileSpec(t, arrayOf(items)), true)
	spec := make([]any, 1000)
	for i := range spec {
		spec[i] = strings.Repeat("a", int(longest))
	}
	got := texts(rules.Evaluate(context.Background(), resource(spec), nil, nil))
	if len(got) != 1 || !strings.HasSuffix(got[0], outOfBudget) {
		t.Errorf("got %q, want one error: %s", got, outOfBudget)
	}
	// The estimates of these exceed the budget, their real cost does not.
	if got := rules.Evaluate(context.Background(), resource(spec[:400]), nil, nil); got != nil {
		t.Errorf("got %q", got)
	}
}

// TestEvaluateEnds: no rule is run when the time for them is over.
func TestEvaluateEnds(t *testing.T) {
	items := apiextensionsv1.JSONSchemaProps{Type: "string"}
	items.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.size() < 5"}}
	rules := New(compileSpec(t, arrayOf(items)), true)
	ctx, cancel := context.WithCancel(t.Context())
	obj := resource([]any{"too long"})
	if got := rules.Evaluate(ctx, obj, nil, nil); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	cancel()
	if got := rules.Evaluate(ctx, obj, nil, nil); got != nil {
		t.Errorf("got %q after the end", got)
	}
}

// TestEvaluateAt evaluates a part of a schema, as defaults need it.
func TestEvaluateAt(t *testing.T) {
	p := &apiextensionsv1.JSONSchemaProps{
		Type: "integer", XValidations: apiextensionsv1.ValidationRules{{Rule: "self > 0"}},
	}
	rules := New(compileSpec(t, p).Properties["spec"], false)
	path := field.NewPath("default")
	for _, old := range []any{nil, int64(-1)} {
		errs, left := rules.EvaluateAt(path, int64(-1), old, EvalOptions{NoRatchet: true, Budget: 100})
		if want := `default: Invalid value: -1: failed rule: self > 0`; len(errs) != 1 || errs[0].Error() != want ||
			left != 98 {
			t.Errorf("got %q and %d left, want %q and 98", errs, left, want)
		}
	}
	if errs, _ := rules.EvaluateAt(path, int64(-1), int64(-1), EvalOptions{}); errs != nil {
		t.Errorf("got %q, want nothing: it is no new failure", errs)
	}
}

// TestConcurrentEvaluate compiles and evaluates the same rules many times at once; the race detector does the rest.
func TestConcurrentEvaluate(t *testing.T) {
	for _, c := range loadCases(t) {
		rules := New(c.compile(t), true)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for _, v := range c.Values {
					obj, old := c.object(v.Spec), c.object(v.Old)
					if got := texts(rules.Evaluate(context.Background(), obj, old, nil)); !slices.Equal(got, v.Errors) {
						t.Errorf("%s: got %q, want %q", c.Name, got, v.Errors)
					}
					rules.EvaluateAt(nil, obj, nil, EvalOptions{})
				}
			})
		}
		wg.Wait()
	}
}

// TestValuesAreViews holds that evaluation changes no object.
func TestValuesAreViews(t *testing.T) {
	spec := map[string]any{"s": append(make([]any, 0, 8), "a", "b"), "l": append(make([]any, 0, 8), int64(1))}
	before := fmt.Sprint(spec)
	set := "set"
	s := *arrayOf(apiextensionsv1.JSONSchemaProps{Type: "string"})
	s.XListType = &set
	rules := New(compileSpec(t, &apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"s": s, "l": *arrayOf(apiextensionsv1.JSONSchemaProps{Type: "integer"}),
		},
		XValidations: apiextensionsv1.ValidationRules{
			{Rule: "(self.s + ['c']).size() == 3 && (self.l + [2]).size() == 2 && self.s == ['b', 'a']"},
		},
	}), true)
	if errs := rules.Evaluate(context.Background(), resource(spec), resource(spec), nil); errs != nil {
		t.Error(errs)
	}
	full := spec["s"].([]any)[:3]
	if got := fmt.Sprint(spec); got != before || full[2] != nil {
		t.Errorf("got %s and %v behind it, want %s", got, full[2], before)
	}
}

// TestMaxCost checks the basis of uncounted evaluation: no expression costs more than its charge.
func TestMaxCost(t *testing.T) {
	base := load[*apiextensionsv1.JSONSchemaProps](t, "schema.yaml")
	objects := load[[]map[string]any](t, "objects.yaml")
	compile := func(position, rule string) *Rules {
		props := base.DeepCopy()
		rules := apiextensionsv1.ValidationRules{{Rule: rule}}
		if position == "" {
			props.XValidations = rules
		} else {
			p := props.Properties[position]
			p.XValidations = rules
			props.Properties[position] = p
		}
		s, err := schema.Compile(props, schema.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if errs := Check(s.Root(), nil, CheckOptions{}); len(errs) > 0 {
			return nil
		}
		return New(s.Root(), true)
	}
	compare := func(r *Rules, rule string, obj, old map[string]any) {
		const budget = 1 << 40
		e := evaluation{budget: budget, extent: within(obj, old)}
		r.tree().evaluate(&e, location{}, obj, old, lineage{})
		_, left := r.EvaluateAt(nil, obj, old, EvalOptions{Budget: budget, NoRatchet: true})
		if charged, cost := budget-e.budget, budget-left; charged < cost {
			t.Errorf("%s: charged %d, costs %d", rule, charged, cost)
		}
	}
	for position, rules := range load[map[string][]any](t, "rules.yaml") {
		for _, rule := range rules {
			if r := compile("", fmt.Sprint(rule)); strings.Trim(position, "~") == "" && r != nil {
				for _, obj := range objects {
					compare(r, fmt.Sprint(rule), obj, objects[1])
				}
			}
		}
	}
	for i := range uint64(400) {
		g := rulegen.New(1, i)
		rule := g.Rule()
		if r := compile("spec", rule); r != nil {
			for range 3 {
				compare(r, rule, g.Object(objects), g.Object(objects))
			}
		}
	}
}

// TestUncounted checks whether certain rules run uncounted on small objects.
func TestUncounted(t *testing.T) {
	base := load[*apiextensionsv1.JSONSchemaProps](t, "schema.yaml")
	s, err := schema.Compile(base, schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	self := typedNode{node: s.Root().Properties["spec"]}
	for rule, want := range map[string]bool{
		"!('*' in self.strs || 'a' in self.strs) || has(self.deep.a.b)":                  true,
		"self.map2.all(a, self.map2.exists_one(b, a.name == b.name))":                    true,
		"self.strs.map(x, x.size()).filter(x, x > 3).size() == 0":                        true,
		"self.str.matches('^[a-z]*$') && self.str.startsWith('a')":                       true,
		"has(self.time) && self.time.getFullYear() > 2000":                               true,
		"self.strs.all(a, self.strs.all(b, self.strs.all(c, a + b == c)))":               false,
		"self.strs.all(a, self.strs.all(b, self.strs.all(c, self.strs.all(d, a == b))))": false,
		"''.split(',').all(x, true)":                                                     false,
		"lists.range(1000000).all(x, true)":                                              false,
		"self.text.replace('a', self.text) == ''":                                        false,
		"[1, 2].map(x, [x, x]).map(x, x + x).size() > 0":                                 false,
	} {
		x, err := newScope(self, nil).compile(storedExpressions(), rule, false, ruleRole)
		if err != nil {
			t.Fatal(err)
		}
		if got := maxcost.Of(x.ast.NativeRep(), extents[0]) <= uncountedCallLimit; got != want {
			t.Errorf("%s: uncounted %v, want %v", rule, got, want)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	p := &apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"policies": *arrayOf(apiextensionsv1.JSONSchemaProps{Type: "string"}),
			"a":        {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"x": {Type: "string"}}},
		},
		XValidations: apiextensionsv1.ValidationRules{
			{Rule: "!('*' in self.policies || 'Create' in self.policies) || has(self.a.x)"},
		},
	}
	node := compileSpec(b, p).Properties["spec"]
	env := storedExpressions()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newScope(typedNode{node: node}, node.Rules).compile(env, node.Rules[0].Rule, false,
			ruleRole); err != nil {
			b.Fatal(err)
		}
	}
}
