package compat

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestAffects checks which changes of a schema make a check read the stored objects.
func TestAffects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		was, is string
		want    bool
	}{
		{`{type: object}`, `{type: object, description: a, title: b, example: c, externalDocs: {url: d}}`, false},
		{`{properties: {a: {type: string}}}`, `{properties: {a: {type: string, description: x}, b: {type: string}}}`, false},
		{`{properties: {a: {type: string}}}`, `{properties: {a: {type: string}, b: {default: 1}}}`, true},
		{`{properties: {a: {type: string}}}`, `{required: [b], properties: {a: {type: string}, b: {}}}`, true},
		{`{properties: {a: {type: string}}}`, `{properties: {a: {type: string, maxLength: 1}}}`, true},
		{`{properties: {a: {type: string}}}`, `{properties: {}}`, true},
		{`{x-kubernetes-preserve-unknown-fields: true}`, `{x-kubernetes-preserve-unknown-fields: true, properties: {b: {}}}`,
			true},
		{`{properties: {a: {x-kubernetes-embedded-resource: true}}}`,
			`{properties: {a: {x-kubernetes-embedded-resource: true, properties: {b: {}}}}}`, true},
		{`{additionalProperties: {type: string}}`, `{additionalProperties: {type: string, description: x}}`, false},
		{`{additionalProperties: {type: string}}`, `{additionalProperties: {type: string, enum: [x]}}`, true},
		{`{items: {properties: {a: {}}}}`, `{items: {properties: {a: {}, b: {}}}}`, false},
		{`{items: {properties: {a: {}}}}`, `{items: {properties: {a: {pattern: x}}}}`, true},
		{`{items: {}}`, `{}`, true},
	} {
		one := func(text string) *apiextensionsv1.CustomResourceDefinition {
			def := &apiextensionsv1.CustomResourceDefinition{}
			def.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{}}}}
			decode(t, text, def.Spec.Versions[0].Schema.OpenAPIV3Schema)
			return def
		}
		if got := affects(one(c.was), one(c.is), 0, 0); got != c.want {
			t.Errorf("%s to %s: %t", c.was, c.is, got)
		}
	}
}

// TestReadOwn checks the annotation of a definition.
func TestReadOwn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Enforce": "", "Warn\n": "", "Off": "", "mode: off": "", "{mode: Enforce, classes: {default: off}}": "",
		"classes: {default: off}": "", "enforce": `no mode "enforce"`, "": `no mode ""`, "mode: Enforced": "no mode",
		"modes: Enforce": "unknown field", "{classes: {x: off}}": `no class "x"`,
	} {
		_, err := ReadOwn(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, not %q", text, err, want)
		}
	}
}
