package crd

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// Schemas compiles the schemas of a definition, by the names of the versions, without CEL rules; obj is the definition
// as decoded JSON. Versions without a schema are missing.
func Schemas(
	obj map[string]any, def *apiextensionsv1.CustomResourceDefinition,
) (out map[string]*schema.Schema, err error) {
	return schemas(obj, def, nil)
}

// schemas is Schemas with CEL rules, which rules compiles.
func schemas(
	obj map[string]any, def *apiextensionsv1.CustomResourceDefinition,
	rules func(root *schema.Node) (schema.Evaluator, error),
) (out map[string]*schema.Schema, err error) {
	masked := sensitiveFields(obj)
	out = map[string]*schema.Schema{}
	for i := range def.Spec.Versions {
		v := &def.Spec.Versions[i]
		props := schemaOf(v)
		if props == nil {
			continue
		}
		o := schema.Options{Rules: rules}
		if masked != nil {
			o.Sensitive = func(path []string) bool { return masked.At(path...).Whole() }
		}
		if out[v.Name], err = schema.Compile(props, o); err != nil {
			return nil, err
		}
	}
	return out, nil
}
