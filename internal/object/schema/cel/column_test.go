package cel

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/format"
)

const columnSchema = `
type: object
properties:
  spec:
    type: object
    properties:
      replicas: {type: integer}
      ratio: {type: number}
      "on": {type: boolean}
      port: {x-kubernetes-int-or-string: true}
      since: {type: string, format: date-time}
      a-b: {type: string}
      names: {type: array, maxItems: 20, items: {type: string, maxLength: 20}}
      all: {type: array, items: {type: string}}
      password: {type: string}
  status:
    type: object
    properties:
      replicas: {type: integer}
`

const columnObject = `
metadata: {name: one, labels: {app: web}, creationTimestamp: "2026-01-02T03:04:05Z"}
spec: {replicas: 3, ratio: 0.5, "on": true, port: http, since: "2026-01-02T03:04:05Z", a-b: x, names: [a, b]}
`

func columnRoot(t *testing.T) *schema.Node {
	t.Helper()
	var props apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict([]byte(columnSchema), &props); err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile(&props, schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Root()
}

func columnValue(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := codec.FromYAML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

func TestColumn(t *testing.T) {
	root, obj := columnRoot(t), columnValue(t, columnObject)
	for _, test := range []struct{ typ, source, want string }{
		{"integer", "self.spec.replicas", "3"},
		{"number", "self.spec.replicas", "3"},
		{"number", "self.spec.ratio * 100.0", "50"},
		{"string", "string(self.spec.replicas) + '/' + string(self.spec.replicas)", `"3/3"`},
		{"boolean", "self.spec.on && self.spec.replicas > 2", "true"},
		{"string", "self.spec.port", `"http"`},
		{"date", "self.spec.since", `"2026-01-02T03:04:05Z"`},
		{"date", "self.metadata.creationTimestamp", `"2026-01-02T03:04:05Z"`},
		{"string", "self.spec.since - duration('1h') < self.spec.since ? 'yes' : 'no'", `"yes"`},
		{"string", "self.metadata.labels['app']", `"web"`},
		{"string", "self.metadata.labels[?'none'].orValue('-')", `"-"`},
		{"string", "self.spec.a__dash__b", `"x"`},
		{"string", "self.spec.names", `["a","b"]`},
		{"string", "self.spec.names.map(n, n + '!')", `["a!","b!"]`},
		{"integer", "self.spec.names.size()", "2"},
		{"string", "self.spec.names.join(',')", `"a,b"`},
		// An expression that fails has no value, as a path without one.
		{"integer", "self.status.replicas", "none"},
		{"integer", "self.?status.?replicas", "none"},
		{"integer", "self.spec.replicas / 0", "none"},
		{"string", "null", "none"},
		{"string", "self.spec", `{"a-b":"x","names":["a","b"],"on":true,"port":"http","ratio":0.5,"replicas":3,` +
			`"since":"2026-01-02T03:04:05Z"}`},
		{"string", "self.metadata.unknown", "error: compilation failed: ERROR"},
		{"string", "self.spec.nope", "error: compilation failed: ERROR"},
		{"string", "object.spec", "error: compilation failed: ERROR"},
		{"integer", "self.spec.a__dash__b", "error: the expression returns string, and a column of type integer needs an int"},
		{"date", "self.spec.replicas", "error: the expression returns int, and a column of type date needs a timestamp"},
		{"boolean", "self.spec", "error: the expression returns an object, and a column of type boolean needs a bool"},
		{"string", "quantity('1')", "error: the expression returns kubernetes.Quantity, and a column of type string needs"},
		{"integer", "self == oldSelf ? 1 : 0", "error: oldSelf is for validation rules"},
		{"string", "self.spec.password", "error: the expression reads self.spec.password, which is"},
		{"string", "self.spec['password']", "error: compilation failed"},
		{"string", "self.?spec.?password", "error: the expression reads self.spec.password, which is"},
		{"string", "dyn(self).spec.password", "error: the expression reads self, which is"},
		{"string", "[self].map(s, string(s.spec.password))", "error: the expression reads self, which is"},
	} {
		o := ColumnCheck{Type: test.typ, Patterns: new(format.Patterns)}
		if strings.Contains(test.source, "password") {
			o.Hidden = func(path []string) bool {
				return strings.HasPrefix("spec.password", strings.Join(path, "."))
			}
		}
		got := ""
		if err := CheckColumn(root, test.source, o); err != nil {
			got = "error: " + err.Error()
		} else if c, err := NewColumn(root, test.source); err != nil {
			t.Errorf("%s: %v", test.source, err)
		} else if v, ok := c.Value(NewObject(obj)); ok {
			got = string(codec.AppendJSON(nil, v))
		} else {
			got = "none"
		}
		if got != test.want && !(strings.HasPrefix(test.want, "error: ") && strings.HasPrefix(got, test.want)) {
			t.Errorf("%s %s gives %s, want %s", test.typ, test.source, got, test.want)
		}
	}
}

// TestColumnsShareABudget checks that the columns of one object cannot cost more than its budget, and that a column of
// another object is not affected.
func TestColumnsShareABudget(t *testing.T) {
	root, obj := columnRoot(t), columnValue(t, columnObject)
	obj["spec"].(map[string]any)["all"] = manyTexts(2000)
	c, err := NewColumn(root, "self.spec.all.filter(a, a.contains('x')).size()")
	if err != nil {
		t.Fatal(err)
	}
	o, shown := NewObject(obj), 0
	for range 100 {
		if _, ok := c.Value(o); ok {
			shown++
		}
	}
	if shown == 0 || shown > 50 {
		t.Errorf("%d of 100 cells have a value", shown)
	}
	if _, ok := c.Value(NewObject(obj)); !ok {
		t.Error("another object has no value")
	}
	dear, err := NewColumn(root, "self.spec.all.map(a, self.spec.all.map(b, a + b)).size()")
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := dear.Value(NewObject(obj)); ok {
		t.Errorf("an expression of 4 million steps has the value %v", v)
	}
}

func manyTexts(n int) (out []any) {
	for range n {
		out = append(out, "text")
	}
	return out
}
