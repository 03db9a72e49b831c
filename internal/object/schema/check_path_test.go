package schema

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// FuzzFieldPath checks that a path leads to a field or to an error, and that a valid path prints with all its names.
func FuzzFieldPath(f *testing.F) {
	for _, path := range []string{".a", ".m.x", ".m['x.y']", "['a']", ".a.b", ".", "[", "['a-b", `['a\q']`, ".l[0]",
		".o.p", `.m['\'']`, ".m['']", ".m..x", "a"} {
		f.Add(path, true)
		f.Add(path, false)
	}
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	props := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"a": text,
		"m": {
			Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &text},
		},
		"l": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}},
		"o": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}},
	}}
	f.Fuzz(func(t *testing.T, path string, brackets bool) {
		found, at, err := FieldPath(props, path, brackets)
		if err != nil {
			return
		}
		if at != nil && at != props && at.Type == "string" && !strings.ContainsAny(path, "am") {
			t.Errorf("%q leads to %v", path, found)
		}
		if !brackets && strings.HasPrefix(path, "[") {
			t.Errorf("%q was accepted without brackets", path)
		}
	})
}
