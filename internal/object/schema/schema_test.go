package schema

import (
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// compileJSON compiles a schema written in JSON.
func compileJSON(t testing.TB, text string, o Options) *Schema {
	t.Helper()
	var props apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal([]byte(text), &props); err != nil {
		t.Fatal(err)
	}
	s, err := Compile(&props, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// parse decodes an object written in JSON.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	v, err := decodeValue([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj, _ := v.(map[string]any)
	return obj
}

// script is one file of testdata: schemas, each with objects and expectations.
type script []struct {
	Name   string
	Schema json.RawMessage
	Cases  []struct {
		Name    string
		Object  json.RawMessage
		Old     json.RawMessage // for updates
		Status  bool            // the update is one of the status
		Result  json.RawMessage // after normalization; if empty, the object stays unchanged
		Unknown []string
		Refused string   // the error of normalization
		Errors  []string // of validation, sorted
	}
}

// TestScripts runs testdata/*.yaml. test/oracle runs the same files to compare the expectations with Kubernetes.
func TestScripts(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".yaml") {
			continue
		}
		data, err := os.ReadFile("testdata/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		var s script
		if err := yaml.UnmarshalStrict(data, &s); err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		for _, group := range s {
			sch := compileJSON(t, string(group.Schema), Options{})
			for _, c := range group.Cases {
				t.Run(group.Name+"/"+c.Name, func(t *testing.T) {
					obj := parse(t, string(c.Object))
					unknown, err := sch.NormalizeRequest(obj)
					if err != nil || c.Refused != "" {
						if err == nil || err.Error() != c.Refused {
							t.Errorf("normalize: %v, want %q", err, c.Refused)
						}
						return
					}
					if !slices.Equal(unknown, c.Unknown) {
						t.Errorf("unknown fields %q, want %q", unknown, c.Unknown)
					}
					want := parse(t, string(c.Object))
					if c.Result != nil {
						want = parse(t, string(c.Result))
					}
					if !reflect.DeepEqual(obj, want) {
						t.Errorf("normalized to\n%v, want\n%v", obj, want)
					}
					var old map[string]any
					if c.Old != nil {
						old = parse(t, string(c.Old))
					}
					errs := sch.Validate(obj, old)
					if c.Status {
						errs = ignoreEnd(sch.ValidateStatus(t.Context(), nil, obj, old, nil))
					}
					if got := texts(errs); !slices.Equal(got, c.Errors) {
						t.Errorf("errors\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.Errors, "\n"))
					}
				})
			}
		}
	}
}

func texts(errs field.ErrorList) (out []string) {
	for _, e := range errs {
		out = append(out, e.Error())
	}
	slices.Sort(out)
	return out
}

func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"id":"x"}`, "OpenAPIV3Schema 'id' is not supported"},
		{`{"$ref":"#/x"}`, "OpenAPIV3Schema '$ref' is not supported"},
		{`{"properties":{"a":{"patternProperties":{"x":{}}}}}`, "OpenAPIV3Schema 'patternProperties' is not supported"},
		{`{"items":[{},{}]}`, "OpenAPIV3Schema 'items' must be a schema, but is an array"},
		{`{"x-kubernetes-preserve-unknown-fields":false}`,
			"'x-kubernetes-preserve-unknown-fields' must be true or undefined"},
		{`{"default":1}`, "prune default value: object root default value must be of object type"},
	} {
		var props apiextensionsv1.JSONSchemaProps
		if err := json.Unmarshal([]byte(c.schema), &props); err != nil {
			t.Fatal(err)
		}
		if _, err := Compile(&props, Options{}); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.schema, err, c.want)
		}
	}
}

func TestCompileNil(t *testing.T) {
	s, err := Compile(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	obj := parse(t, `{"kind":"A","metadata":{"name":"n"},"spec":{"a":1}}`)
	if unknown := s.Normalize(obj); !slices.Equal(unknown, []string{"spec"}) || len(obj) != 2 {
		t.Errorf("unknown %q, object %v", unknown, obj)
	}
}

// TestShared checks that equal places share a node, and that places with different pruning or rules do not.
func TestShared(t *testing.T) {
	root := compileJSON(t, `{"properties":{
		"a":{"type":"object","properties":{"x":{"type":"string","default":"d"}}},
		"b":{"type":"object","properties":{"x":{"type":"string","default":"d"}}},
		"c":{"type":"string","x-kubernetes-validations":[{"rule":"true"}]},
		"d":{"type":"string","x-kubernetes-validations":[{"rule":"true"}]},
		"e":{"type":"array","default":[1]},
		"f":{"type":"array","default":[1]}}}`, Options{}).Root().Properties
	for pair, want := range map[[2]string]bool{{"a", "b"}: true, {"c", "d"}: false, {"e", "f"}: false} {
		if got := root[pair[0]] == root[pair[1]]; got != want {
			t.Errorf("%v shared: %v, want %v", pair, got, want)
		}
	}
}

// fixedRules fails always.
type fixedRules struct{ calls int }

func (r *fixedRules) Evaluate(_ context.Context, _, _ map[string]any, _ func(*field.Error)) field.ErrorList {
	r.calls++
	return field.ErrorList{field.Invalid(field.NewPath("spec"), 1, "a rule")}
}

// TestRules checks when rules run: after everything else, and only on objects of the right shape.
func TestRules(t *testing.T) {
	const text = `{"x-kubernetes-validations":[{"rule":"false"}],"properties":{"n":{"type":"integer","minimum":3},"s":{"type":"string","maxLength":1}}}`
	const skipped = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
	rules := &fixedRules{}
	s := compileJSON(t, text, Options{Rules: func(*Node) (Evaluator, error) { return rules, nil }})
	for _, c := range []struct {
		obj    string
		before field.ErrorList
		last   string
		calls  int
	}{
		{`{}`, nil, "spec: Invalid value: 1: a rule", 1},
		{`{"n":1}`, nil, "spec: Invalid value: 1: a rule", 1},
		{`{"n":"x"}`, nil, skipped, 0},
		{`{"s":"long"}`, nil, skipped, 0},
		{`{}`, field.ErrorList{field.Required(field.NewPath("metadata", "name"), "")}, skipped, 0},
	} {
		rules.calls = 0
		errs := ignoreEnd(s.ValidateAfter(t.Context(), c.before, parse(t, c.obj), nil, nil))
		if last := errs[len(errs)-1].Error(); last != c.last || rules.calls != c.calls {
			t.Errorf("%s: last error %q, %d calls", c.obj, last, rules.calls)
		}
	}
	none := compileJSON(t, `{"properties":{"n":{"type":"integer"}}}`, Options{Rules: func(*Node) (Evaluator, error) {
		t.Error("rules compiled where there are none")
		return nil, nil
	}})
	if errs := none.Validate(parse(t, `{"n":"x"}`), nil); len(errs) != 1 {
		t.Error(errs)
	}
}

func TestScale(t *testing.T) {
	selector := ".status.selector"
	s := compileJSON(t, `{"x-kubernetes-preserve-unknown-fields":true}`,
		Options{Scale: &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas", LabelSelectorPath: &selector,
		}})
	for _, c := range []struct {
		obj  string
		want []string
	}{
		{`{}`, nil},
		{`{"spec":{"replicas":2147483647},"status":{"replicas":0,"selector":"a=b"}}`, nil},
		{`{"spec":{"replicas":-1},"status":{"replicas":2147483648,"selector":5}}`, []string{
			`.spec.replicas: Invalid value: -1: should be a non-negative integer`,
			`.status.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647`,
			`.status.selector: Invalid value: "": .status.selector accessor error: 5 is of the type int64, expected string`,
		}},
		{`{"spec":{"replicas":"x"}}`,
			[]string{
				`.spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64`,
			}},
	} {
		if got := texts(s.Validate(parse(t, c.obj), nil)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.obj, got)
		}
	}
	both := parse(t, `{"spec":{"replicas":-1},"status":{"replicas":-1}}`)
	if got := texts(ignoreEnd(s.ValidateStatus(t.Context(), nil, both, map[string]any{}, nil))); len(got) != 1 {
		t.Errorf("status: %q", got)
	}
}

// TestAllocations holds that objects in shape, and their updates, cost no memory.
func TestAllocations(t *testing.T) {
	s := compileJSON(t, `{"type":"object","properties":{"spec":{"type":"object","required":["list"],"properties":{
		"list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name","port"],"items":{"type":"object","properties":{
			"name":{"type":"string","maxLength":9,"pattern":"^n"},"port":{"type":"integer","minimum":1,"default":80}}}},
		"set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","enum":["a","b","c"]}},
		"when":{"type":"string","format":"date-time"},
		"any":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
		"map":{"type":"object","additionalProperties":{"type":"string"}},
		"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}`, Options{})
	obj := parse(t,
		`{"apiVersion":"a/v1","kind":"A","metadata":{"name":"n"},"spec":{"list":[{"name":"n1","port":1},{"name":"n1","port":2},{"name":"n2","port":80}],
		"set":["a","b"],"when":"2020-01-01T00:00:00Z","any":"50%","map":{"a":"b"},"free":{"x":{"y":[1]}}}}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := s.NormalizeRequest(obj); err != nil || len(s.Validate(obj, obj)) > 0 {
			t.Fatal("not in shape")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzSchema uses arbitrary schemas and objects. Nothing may panic, normalization is idempotent, valid agrees with
// explain, and an unchanged update of a valid object has no errors.
func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"integer","minimum":1,"default":3}}}`, `{"a":0,"b":1}`)
	f.Add(`{"properties":{"a":{"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}`,
		`{"a":{"metadata":{"name":1}}}`)
	f.Add(
		`{"properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"anyOf":[{"required":["k"]},{"not":{}}]}}}}`, `{"l":[{"k":1},{"k":1},null]}`)
	f.Fuzz(func(t *testing.T, schemaText, objText string) {
		var props apiextensionsv1.JSONSchemaProps
		if json.Unmarshal([]byte(schemaText), &props) != nil {
			t.Skip()
		}
		v, err := decodeValue([]byte(objText))
		obj, ok := v.(map[string]any)
		if err != nil || !ok {
			t.Skip()
		}
		CheckDefinition(&props, field.NewPath("schema"), CheckOptions{})
		s, err := Compile(&props, Options{})
		if err != nil {
			t.Skip()
		}
		ignoreEnd(s.ValidateStatus(t.Context(), nil, obj, parse(t, objText), nil))
		if _, err := s.NormalizeRequest(obj); err != nil {
			return
		}
		if again, err := s.NormalizeRequest(obj); err != nil || len(again) > 0 {
			t.Errorf("normalized twice: %v %v", again, err)
		}
		valid := (&walk{schema: s}).valid(s.root, obj)
		explained := len(new(walk).explain(s.root, obj, prior{}, nil))+len(s.explainLists(s.root, obj, "")) == 0
		if valid != explained {
			t.Errorf("valid: %v, explained: %v", valid, explained)
		}
		if valid && len(s.Validate(obj, obj)) != len(explainMeta(s.root, obj, "")) {
			t.Error("a valid object has an invalid update")
		}
	})
}

// ignoreEnd returns the errors of a validation with a context that does not end.
func ignoreEnd(errs field.ErrorList, err error) field.ErrorList {
	if err != nil {
		panic(err)
	}
	return errs
}

// TestPrunesApplied checks where an apply accepts fields that a read prunes.
func TestPrunesApplied(t *testing.T) {
	const preserve = `"x-kubernetes-preserve-unknown-fields":true`
	for _, c := range []struct {
		schema string
		want   bool
	}{
		{`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}`, false},
		{`{"type":"object","properties":{"a":{"type":"object"}}}`, true},
		{`{"type":"object","properties":{"a":{"type":"object",` + preserve + `}}}`, false},
		{`{"type":"object",` + preserve + `,"properties":{"a":{"type":"string"}}}`, false},
		{`{"type":"object",` + preserve + `,"properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}`,
			true},
		{`{"type":"object",` + preserve + `,"properties":{"a":{"type":"object",` + preserve + `,"properties":{
			"b":{"type":"string"}}}}}`, false},
		{`{"type":"object","properties":{"a":{"type":"object",` + preserve + `,"properties":{
			"b":{"type":"array","items":{"type":"object","properties":{"c":{"type":"string"}}}}}}}}`, true},
		{`{"type":"object","properties":{"a":{"type":"object",` + preserve + `,"properties":{
			"b":{"type":"object","additionalProperties":{"type":"string"}}}}}}`, false},
		{`{"type":"object","properties":{"a":{"type":"object",` + preserve + `,"properties":{
			"b":{"x-kubernetes-int-or-string":true}}}}}`, false},
	} {
		if got := compileJSON(t, c.schema, Options{}).PrunesApplied(); got != c.want {
			t.Errorf("%s: %v, want %v", c.schema, got, c.want)
		}
	}
}
