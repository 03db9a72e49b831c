package cel

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

var update = flag.Bool("update", false, "rewrite the expectations of testdata/cases.yaml")

// testCase is the schema of a resource's spec, or of the whole resource, with the expected results of Check and of its
// rules on values.
type testCase struct {
	Name string `json:"name"`
	// values of spec are the whole resource except its metadata
	Root   bool                             `json:"root,omitempty"`
	Schema *apiextensionsv1.JSONSchemaProps `json:"schema"`
	Check  []string                         `json:"check,omitempty"`
	Values []testValue                      `json:"values,omitempty"`
}

type testValue struct {
	Spec     any      `json:"spec"`
	Old      any      `json:"old,omitempty"`
	Errors   []string `json:"errors,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

func loadCases(t *testing.T) []testCase {
	t.Helper()
	return load[[]testCase](t, "cases.yaml")
}

// load decodes a file of testdata; numbers become int64 or float64 as in a request.
func load[T any](t *testing.T, file string) (out T) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err == nil {
		data, err = yaml.YAMLToJSONStrict(data)
	}
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// compileSpec compiles the schema of a resource with this spec.
func compileSpec(t testing.TB, spec *apiextensionsv1.JSONSchemaProps) *schema.Node {
	t.Helper()
	s, err := schema.Compile(&apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": *spec},
	}, schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Root()
}

func resource(spec any) map[string]any {
	if spec == nil {
		return nil
	}
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Test", "metadata": map[string]any{"name": "kube-x"}, "spec": spec,
	}
}

// object returns the object for a value of the case.
func (c *testCase) object(v any) map[string]any {
	obj := resource(v)
	if c.Root && obj != nil {
		delete(obj, "spec")
		maps.Copy(obj, v.(map[string]any))
	}
	return obj
}

// compile compiles the schema of the resource.
func (c *testCase) compile(t testing.TB) *schema.Node {
	t.Helper()
	if !c.Root {
		return compileSpec(t, c.Schema)
	}
	s, err := schema.Compile(c.Schema, schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Root()
}

func texts(errs field.ErrorList) (out []string) {
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// TestCases holds the rules of the page "Extend the Kubernetes API with CustomResourceDefinitions", with the words of
// today's kube-apiserver. test/oracle/cel compares the same file with upstream.
func TestCases(t *testing.T) {
	cases := loadCases(t)
	for i := range cases {
		c := &cases[i]
		t.Run(c.Name, func(t *testing.T) {
			root := c.compile(t)
			expect(t, "check", &c.Check, texts(Check(root, field.NewPath("openAPIV3Schema"), CheckOptions{})))
			rules := New(root, true)
			for j := range c.Values {
				v := &c.Values[j]
				obj, old := c.object(v.Spec), c.object(v.Old)
				var warnings []string
				errs := rules.Evaluate(t.Context(), obj, old, func(w *field.Error) {
					warnings = append(warnings, w.Error())
				})
				expect(t, "evaluate", &v.Errors, texts(errs))
				expect(t, "warnings", &v.Warnings, warnings)
				var before any
				if old != nil {
					before = old
				}
				counted, _ := rules.EvaluateAt(nil, obj, before, EvalOptions{})
				expect(t, "evaluate, counting costs", &v.Errors, texts(counted))
			}
		})
	}
	if *update {
		writeCases(t, cases)
	}
}

// expect compares one expectation, or updates it with -update.
func expect(t *testing.T, desc string, want *[]string, got []string) {
	t.Helper()
	if *update {
		*want = got
	}
	if !slices.Equal(got, *want) {
		t.Errorf("%s:\ngot  %q\nwant %q", desc, got, *want)
	}
}

func writeCases(t *testing.T, cases []testCase) {
	t.Helper()
	var all bytes.Buffer
	all.WriteString(
		"# Schemas of spec, what Check says about them, and what their rules say about values. go test -update rewrites this file.\n")
	for _, c := range cases {
		data, err := json.Marshal([]testCase{c})
		if err != nil {
			t.Fatal(err)
		}
		if data, err = yaml.JSONToYAML(data); err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	if err := os.WriteFile("testdata/cases.yaml", all.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
