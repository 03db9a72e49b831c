package openapi

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// TestAppendSchema compares with the encoder of kube-openapi.
func TestAppendSchema(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible
	for i := range 3000 {
		s := randomSchema(r, 4)
		got, err := appendSchema([]byte("before"), s)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var g, w any
		if err := json.Unmarshal(got[len("before"):], &g); err != nil {
			t.Fatalf("%d: %v in %s", i, err, got)
		}
		if err := json.Unmarshal(want, &w); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(g, w) {
			t.Fatalf("%d: %s\nwant %s", i, got, want)
		}
	}
}

func randomSchema(r *rand.Rand, depth int) *spec.Schema {
	s := &spec.Schema{}
	some := func(f func()) {
		if r.IntN(6) == 0 {
			f()
		}
	}
	texts := []string{"", "a", `"<&>"`, "über\u2028", "a\n\x00", "\\"}
	text := func() string { return texts[r.IntN(len(texts))] }
	values := []any{
		nil, true, int64(1 << 60), 1.5, 1e30, "x", []any{}, []any{nil, "a"}, map[string]any{"b": []any{1.0}},
	}
	value := func() any { return values[r.IntN(len(values))] }
	number, length := 0.1*float64(r.IntN(99)), int64(r.IntN(9))
	for _, f := range []func(){
		func() { s.Type = []spec.StringOrArray{nil, {"string"}, {"a", "b"}}[r.IntN(3)] },
		func() { s.Description = text() }, func() { s.Title = text() }, func() { s.Format = text() },
		func() { s.Nullable = true }, func() { s.UniqueItems = true }, func() { s.ExclusiveMaximum = true },
		func() { s.ExclusiveMinimum = true },
		func() { s.Default = value() }, func() { s.Example = value() }, func() { s.Enum = []any{value(), value()} },
		func() { s.Enum = []any{} }, func() { s.Required = []string{} }, func() { s.Required = []string{text(), "x"} },
		func() { s.Maximum = &number }, func() { s.Minimum = &number }, func() { s.MultipleOf = &number },
		func() { s.MaxLength = &length }, func() { s.MinLength = &length }, func() { s.MaxItems = &length },
		func() { s.MinItems = &length }, func() { s.MaxProperties = &length }, func() { s.MinProperties = &length },
		func() { s.Pattern = text() }, func() { s.Ref = spec.MustCreateRef(refV3 + "x") },
		func() { s.ExternalDocs = &spec.ExternalDocumentation{URL: text()} }, func() { s.ID = "id" },
		func() { s.AddExtension(preserveExtension, true) },
		func() { s.AddExtension("x-kubernetes-list-map-keys", []string{"a", text()}) },
		func() { s.AddExtension("x-kubernetes-list-type", text()) }, func() { s.AddExtension("no-extension", "x") },
		func() { s.AddExtension("x-kubernetes-group-version-kind", []any{groupVersionKind{"g", "v", text()}}) },
		func() {
			s.AddExtension("x-kubernetes-validations",
				apiextensionsv1.ValidationRules{{Rule: text(), Message: text(), OptionalOldSelf: new(bool)}})
		},
	} {
		some(f)
	}
	if depth == 0 {
		return s
	}
	child := func() *spec.Schema { return randomSchema(r, depth-1) }
	for _, f := range []func(){
		func() { s.Items = &spec.SchemaOrArray{Schema: child()} }, func() { s.Not = child() },
		func() { s.AllOf = []spec.Schema{*child(), *child()} }, func() { s.AnyOf = []spec.Schema{*child()} },
		func() { s.OneOf = []spec.Schema{} }, func() { s.Properties = map[string]spec.Schema{} },
		func() { s.Properties = map[string]spec.Schema{text(): *child(), "b": *child(), "c": *child()} },
		func() { s.AdditionalProperties = &spec.SchemaOrBool{Allows: r.IntN(2) == 0} },
		func() { s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: child()} },
	} {
		some(f)
	}
	return s
}
