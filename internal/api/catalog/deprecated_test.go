package catalog

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const deprecatedSchema = `
properties:
  spec:
    properties:
      port: {type: string, description: "Deprecated: use spec.ports."}
      mode: {type: string, default: x, description: "The mode.\n\nDeprecated: it has\nno effect.\n\nMore."}
      old: {type: object, description: "Deprecated:", properties: {port: {description: "Deprecated: x"}}}
      no: {description: "Not Deprecated: it stays."}
      ports: {items: {properties: {name: {description: "Deprecated: a"}, number: {}}}}
      map: {additionalProperties: {properties: {name: {description: "Deprecated: b"}}}}
`

// TestDeprecated checks which deprecated fields are new in an object.
func TestDeprecated(t *testing.T) {
	t.Parallel()
	var p apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict([]byte(deprecatedSchema), &p); err != nil {
		t.Fatal(err)
	}
	d := deprecatedFields(&p)
	const port, mode = "spec.port is deprecated: use spec.ports.", "spec.mode is deprecated: it has no effect."
	const name = "spec.ports[*].name is deprecated: a"
	for _, c := range []struct {
		obj, old string
		want     []string
	}{
		{`{}`, ``, nil},
		{`{port: a, mode: b, no: c}`, ``, []string{mode, port}},
		{`{port: a, mode: x}`, ``, []string{port}},
		{`{port: null, mode: null}`, ``, nil},
		{`{port: a}`, `{port: a}`, nil},
		{`{port: a, no: b}`, `{port: b}`, []string{port}},
		{`{port: a}`, `{mode: a}`, []string{port}},
		{`{}`, `{port: a}`, nil},
		{`{old: {port: a}}`, ``, []string{"spec.old is deprecated"}},
		{`{ports: [{name: a}, {name: b}]}`, ``, []string{name}},
		{`{ports: [{name: b}, {name: a}]}`, `{ports: [{name: a}, {name: b}]}`, nil},
		{`{ports: [{name: b}, {name: c}]}`, `{ports: [{name: a}, {name: b}]}`, []string{name}},
		{`{map: {x: {name: c}}}`, ``, []string{"spec.map[*].name is deprecated: b"}},
	} {
		read := func(spec string) Object {
			if spec == "" {
				return nil
			}
			obj := Object{}
			if err := yaml.Unmarshal([]byte("spec: "+spec), &obj); err != nil {
				t.Fatal(err)
			}
			return obj
		}
		if got := d.Warnings(read(c.obj), read(c.old)); !slices.Equal(got, c.want) {
			t.Errorf("%s over %s: %q, not %q", c.obj, c.old, got, c.want)
		}
	}
	if deprecatedFields(&apiextensionsv1.JSONSchemaProps{Description: "x Deprecated: y"}) != nil {
		t.Error("a schema without deprecated fields")
	}
}
