package schema

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
