package compat

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// affects reports whether the change of version i of a definition, number j of the new state, may make stored objects
// invalid or remove their fields. It is false for the changes of most new releases: documentation, and new optional
// fields where objects had no unknown ones.
func affects(was, is *apiextensionsv1.CustomResourceDefinition, i, j int) bool {
	preserve := was.Spec.PreserveUnknownFields
	if preserve != is.Spec.PreserveUnknownFields {
		return true
	}
	before, after := schemaOf(&was.Spec.Versions[i]), schemaOf(&is.Spec.Versions[j])
	return !equality.Semantic.DeepEqual(essence(before, before, preserve), essence(after, before, preserve))
}

// essence returns a copy of a schema without the parts that cannot affect stored objects: documentation, and fields
// that old lacks. preserve means that objects may have fields unknown to old.
func essence(s, old *apiextensionsv1.JSONSchemaProps, preserve bool) *apiextensionsv1.JSONSchemaProps {
	out := *s
	out.Description, out.Title, out.ExternalDocs, out.Example = "", "", nil, nil
	keeps := preserve || isTrue(old.XPreserveUnknownFields) || old.XEmbeddedResource || old.AdditionalProperties != nil
	out.Properties = nil
	for name, field := range s.Properties {
		was, known := old.Properties[name]
		switch {
		case known:
			field = *essence(&field, &was, preserve)
		case !keeps && field.Default == nil:
			continue
		}
		if out.Properties == nil {
			out.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		out.Properties[name] = field
	}
	if s.Items != nil && s.Items.Schema != nil && old.Items != nil && old.Items.Schema != nil {
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: essence(s.Items.Schema, old.Items.Schema, preserve)}
	}
	if valuesOf(s) != nil && valuesOf(old) != nil {
		out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{
			Allows: s.AdditionalProperties.Allows, Schema: essence(valuesOf(s), valuesOf(old), preserve),
		}
	}
	return &out
}
