package reshape

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// schemas compiles a YAML map of schemas. Each gets the fields of every object.
func schemas(t testing.TB, text string) map[string]*schema.Schema {
	t.Helper()
	var all map[string]*apiextensionsv1.JSONSchemaProps
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]*schema.Schema{}
	for name, props := range all {
		for _, field := range []string{"apiVersion", "kind"} {
			props.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		props.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Type: "object"}
		s, err := schema.Compile(props, schema.Options{})
		if err != nil {
			t.Fatal(err)
		}
		out[name] = s
	}
	return out
}

// plan compiles a configuration.
func plan(t testing.TB, of map[string]*schema.Schema, text string) *Plan {
	t.Helper()
	c, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(c, of)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// decode returns the object of a YAML text.
func decode(t testing.TB, text string) object.Object {
	t.Helper()
	raw, err := codec.FromYAML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v.(object.Object)
}

// encode returns an object as YAML.
func encode(t testing.TB, obj object.Object) string {
	t.Helper()
	out, err := codec.ToYAML(codec.AppendJSON(nil, obj))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
