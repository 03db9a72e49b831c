package cel

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel"
)

// shared are the files of internal/object/schema/cel's own tests.
const shared = "../../../../internal/object/schema/cel/testdata/"

func load[T any](tb testing.TB, file string) (out T) {
	tb.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		tb.Fatal(err)
	}
	if data, err = yaml.YAMLToJSON(data); err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, &out)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// at returns the schema at a place such as "spec.items[].labels{}".
func at(props *apiextensionsv1.JSONSchemaProps, path string, f func(*apiextensionsv1.JSONSchemaProps)) {
	name, rest, _ := strings.Cut(path, ".")
	switch {
	case path == "":
		f(props)
	case strings.HasPrefix(path, "[]"):
		at(props.Items.Schema, strings.TrimPrefix(path[2:], "."), f)
	case strings.HasPrefix(path, "{}"):
		at(props.AdditionalProperties.Schema, strings.TrimPrefix(path[2:], "."), f)
	default:
		if i := strings.IndexAny(name, "[{"); i >= 0 {
			rest = strings.TrimPrefix(path[i:], ".")
			name = name[:i]
		}
		p, ok := props.Properties[name]
		if !ok {
			panic("no property " + name)
		}
		at(&p, rest, f)
		props.Properties[name] = p
	}
}

// subject is a schema on both sides, ready to evaluate objects.
type subject struct {
	name string
	up   *upstream
	our  *cel.Rules
	// costs are compared, too: they are not random.
	costs bool
}

func newSubject(tb testing.TB, name string, props *apiextensionsv1.JSONSchemaProps) *subject {
	tb.Helper()
	up, err := newUpstream(props)
	if err != nil {
		tb.Fatal(err)
	}
	our, err := schema.Compile(props, schema.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return &subject{name, up.compile(), cel.New(our.Root(), true), true}
}

// compare evaluates obj on both sides, with and without counting costs.
func (s *subject) compare(t *testing.T, obj, old map[string]any) (failures int) {
	t.Helper()
	if (s.our == nil) != (s.up.validator == nil) {
		t.Errorf("%s: ours has rules: %v, upstream's: %v", s.name, s.our != nil, s.up.validator != nil)
		return 0
	}
	if s.our == nil {
		return 0
	}
	for _, budget := range []int64{celconfig.RuntimeCELCostBudget, 40, 7, 1} {
		if !s.costs && budget != celconfig.RuntimeCELCostBudget {
			break
		}
		theirs, theirWarnings, theirLeft := s.up.evaluate(obj, old, true, budget)
		if strings.Contains(fmt.Sprint(theirs), "*types.Err is not traits.Lister") {
			continue // the cost formulas of the "lists" extension panic on errors; see docs/differences.md
		}
		var before any
		if old != nil {
			before = old
		}
		ours, left := s.our.EvaluateAt(nil, obj, before, cel.EvalOptions{Budget: budget})
		if a, b := describe(ours), describe(theirs); !slices.Equal(a, b) {
			t.Errorf("%s: budget %d\nours     %q\nupstream %q\nobject %s\nold    %s", s.name, budget, a, b, brief(obj),
				brief(old))
		}
		if s.costs && left != theirLeft {
			t.Errorf("%s: budget %d: ours leaves %d, upstream %d\nobject %s\nold    %s", s.name, budget, left,
				theirLeft, brief(obj), brief(old))
		}
		if budget == celconfig.RuntimeCELCostBudget {
			failures += len(ours)
			var warnings []string
			errs := s.our.Evaluate(t.Context(), obj, old, func(w *field.Error) {
				warnings = append(warnings, w.Error())
			})
			if slices.Sort(warnings); !slices.Equal(warnings, sorted(theirWarnings)) {
				t.Errorf("%s: warnings\nours     %q\nupstream %q\nobject %s\nold    %s", s.name, warnings,
					theirWarnings, brief(obj), brief(old))
			}
			if a, b := describe(errs), describe(theirs); !slices.Equal(a, b) {
				t.Errorf("%s: uncounted\nours     %q\nupstream %q\nobject %s\nold    %s", s.name, a, b, brief(obj),
					brief(old))
			}
		}
	}
	return failures
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// TestRules checks and evaluates the rules of testdata/rules.yaml.
func TestRules(t *testing.T) {
	objects := load[[]map[string]any](t, shared+"objects.yaml")
	base := load[*apiextensionsv1.JSONSchemaProps](t, shared+"schema.yaml")
	cases := load[map[string][]any](t, shared+"rules.yaml")
	for path, rules := range cases {
		for i, text := range rules {
			t.Run(fmt.Sprintf("%s/%d", path, i), func(t *testing.T) {
				t.Parallel()
				for _, optional := range []*bool{nil, new(bool), &yes} {
					rule := apiextensionsv1.ValidationRule{Rule: fmt.Sprint(text), OptionalOldSelf: optional}
					if strings.Contains(rule.Rule, "\n") {
						rule.Message = "spans lines"
					}
					props := base.DeepCopy()
					at(props, strings.TrimPrefix(path, "~"),
						func(p *apiextensionsv1.JSONSchemaProps) {
							p.XValidations = apiextensionsv1.ValidationRules{rule}
						})
					compareRule(t, rule.Rule, props, objects, !strings.ContainsAny(path, "~{"))
				}
			})
		}
	}
}

var yes = true

// compareRule checks a schema, and evaluates its rules unless that finds errors other than costs.
func compareRule(
	t *testing.T, name string, props *apiextensionsv1.JSONSchemaProps, objects []map[string]any, costs bool,
) {
	t.Helper()
	if strings.TrimSpace(name) == "" {
		return // package schema reports the missing rule
	}
	for _, err := range compareCheck(t, name, props) {
		if !strings.Contains(err, "uncorrelatable") {
			return
		}
	}
	s := newSubject(t, name, props)
	s.costs = costs
	for _, obj := range objects {
		s.compare(t, obj, nil)
		for _, old := range objects {
			s.compare(t, obj, old)
		}
	}
}

// brief is the beginning of an object's text.
func brief(obj map[string]any) string { return fmt.Sprintf("%.200s", fmt.Sprint(obj)) }

// TestMessages checks and evaluates rules with messages, reasons and field paths.
func TestMessages(t *testing.T) {
	objects := load[[]map[string]any](t, shared+"objects.yaml")
	base := load[*apiextensionsv1.JSONSchemaProps](t, shared+"schema.yaml")
	for i, rules := range load[[]apiextensionsv1.ValidationRules](t, "messages.yaml") {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			props := base.DeepCopy()
			props.XValidations = rules
			compareStatic(t, props)
			s := newSubject(t, fmt.Sprint(rules), props)
			for _, obj := range objects {
				s.compare(t, obj, nil)
				for _, old := range objects {
					s.compare(t, obj, old)
				}
			}
		})
	}
}

// compareStatic is compareCheck for schemas that may be refused for the fields of a rule.
func compareStatic(t *testing.T, props *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	up, err := newUpstream(props)
	if err != nil {
		t.Fatal(err)
	}
	our, err := schema.Compile(props, schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	errs, path := up.check()
	theirs := describe(errs)
	static := slices.ContainsFunc(theirs, func(s string) bool { return strings.Contains(s, "must be a valid path") })
	ours := describe(cel.Check(our.Root(), path, cel.CheckOptions{Skip: func(string) bool { return static }}))
	theirs = slices.DeleteFunc(theirs, func(s string) bool { return strings.Contains(s, "must be a valid path") })
	if !slices.Equal(ours, theirs) {
		t.Errorf("%v:\nours     %q\nupstream %q", props.XValidations, ours, theirs)
	}
}

// TestAllOf evaluates rules below allOf. They run only if the schema has other rules.
func TestAllOf(t *testing.T) {
	objects := load[[]map[string]any](t, shared+"objects.yaml")
	base := load[*apiextensionsv1.JSONSchemaProps](t, shared+"schema.yaml")
	rule := func(text string) apiextensionsv1.ValidationRules {
		return apiextensionsv1.ValidationRules{{Rule: text}}
	}
	for _, own := range []string{"", "has(self.int)"} {
		props := base.DeepCopy()
		at(props, "spec", func(p *apiextensionsv1.JSONSchemaProps) {
			if own != "" {
				p.XValidations = rule(own)
			}
			p.AllOf = []apiextensionsv1.JSONSchemaProps{
				{XValidations: rule("self.str == 'hello'")},
				{Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"int": {XValidations: rule("self > 5")},
					"labels": {
						AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
							Schema: &apiextensionsv1.JSONSchemaProps{XValidations: rule("self == 'web'")}, Allows: true,
						},
					},
					"map1": {
						Items: &apiextensionsv1.JSONSchemaPropsOrArray{
							Schema: &apiextensionsv1.JSONSchemaProps{XValidations: rule("self == oldSelf")},
						},
					},
				}},
			}
		})
		s := newSubject(t, "allOf, own "+own, props)
		s.costs = false
		for _, obj := range objects {
			s.compare(t, obj, nil)
			for _, old := range objects {
				s.compare(t, obj, old)
			}
		}
	}
}

// TestPage compares the cases of internal/object/schema/cel's own test: the rules of the Kubernetes documentation.
func TestPage(t *testing.T) {
	type testCase struct {
		Name string `json:"name"`
		// the schema and the values are of the whole resource
		Root   bool                             `json:"root"`
		Schema *apiextensionsv1.JSONSchemaProps `json:"schema"`
		Values []struct {
			Spec any `json:"spec"`
			Old  any `json:"old"`
		} `json:"values"`
	}
	for _, c := range load[[]testCase](t, shared+"cases.yaml") {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			props := c.Schema
			if !c.Root {
				props = &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": *c.Schema},
				}
			}
			compareCheck(t, c.Name, props)
			s := newSubject(t, c.Name, props)
			resource := func(v any) map[string]any {
				if v == nil {
					return nil
				}
				obj := map[string]any{
					"apiVersion": "example.com/v1", "kind": "Test", "metadata": map[string]any{"name": "kube-x"},
				}
				if !c.Root {
					obj["spec"] = v
				} else {
					maps.Copy(obj, v.(map[string]any))
				}
				return obj
			}
			for _, v := range c.Values {
				s.compare(t, resource(v.Spec), resource(v.Old))
			}
		})
	}
}
