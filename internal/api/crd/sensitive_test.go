package crd

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
)

// definitionWith returns a definition with one version that has the schema and the further fields.
func definitionWith(t *testing.T, schema, version string) map[string]any {
	t.Helper()
	return decodeYAML(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ts.example.com},
  spec: {group: example.com, scope: Cluster, names: {plural: ts, kind: T, singular: t, listKind: TList},
  conversion: {strategy: None}, versions: [{name: v1, served: true, storage: true, `+version+`schema: {openAPIV3Schema: `+schema+`}}]},
  status: {storedVersions: [v1], conditions: [], acceptedNames: {plural: ts, kind: T}}}`)
}

func decodeYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "\t", " ")))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	obj, err := decodeDefinition(raw)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

const mark = "x-kubernetes-sensitive-data: true"

func TestSensitiveKeywordPlaces(t *testing.T) {
	rules := Rules()
	const at = "spec.versions[0].schema.openAPIV3Schema"
	for name, test := range map[string]struct{ schema, version, want string }{
		"a scalar":        {schema: `{type: object, properties: {a: {type: string, ` + mark + `}}}`},
		"an object":       {schema: `{type: object, properties: {a: {type: object, ` + mark + `, properties: {b: {type: string}}}}}`},
		"values of a map": {schema: `{type: object, properties: {a: {type: object, additionalProperties: {type: string, ` + mark + `}}}}`},
		"items of a list": {schema: `{type: object, properties: {a: {type: array, items: {type: string, ` + mark + `}}}}`},
		"int or string":   {schema: `{type: object, properties: {a: {x-kubernetes-int-or-string: true, ` + mark + `}}}`},
		"false":           {schema: `{type: object, x-kubernetes-sensitive-data: false, properties: {a: {type: string}}}`},
		"no boolean": {schema: `{type: object, properties: {a: {type: string, x-kubernetes-sensitive-data: "yes"}}}`,
			want: at + `.properties[a].x-kubernetes-sensitive-data: Invalid value: "yes": must be true or false`},
		"the root": {schema: `{type: object, ` + mark + `, properties: {a: {type: string}}}`,
			want: at + `.x-kubernetes-sensitive-data: Forbidden: x-kubernetes-sensitive-data must not be used at the root of the schema`},
		"a junctor": {schema: `{type: object, properties: {a: {type: string, anyOf: [{minLength: 1, ` + mark + `}]}}}`,
			want: at + `.properties[a].anyOf[0].x-kubernetes-sensitive-data: Forbidden: must be undefined to be structural`},
		"metadata": {schema: `{type: object, properties: {metadata: {type: object, properties: {name: {type: string, ` + mark + `}}}}}`,
			want: at + `.properties[metadata].properties[name].x-kubernetes-sensitive-data: Forbidden: must not be used for apiVersion, kind and metadata`},
		"the kind of an embedded object": {schema: `{type: object, properties: {a: {type: object, x-kubernetes-embedded-resource: true,
			properties: {kind: {type: string, ` + mark + `}}}}}`,
			want: at + `.properties[a].properties[kind].x-kubernetes-sensitive-data: Forbidden: must not be used for apiVersion, kind and metadata`},
		"a key of a list": {schema: `{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k],
			items: {type: object, required: [k], properties: {k: {type: string, ` + mark + `}}}}}}`,
			want: at + `.properties[a].items.properties[k].x-kubernetes-sensitive-data: Forbidden: must not be used for a key of a list with x-kubernetes-list-type=map`},
		"items of a list with keys": {schema: `{type: object, properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k],
			items: {type: object, ` + mark + `, required: [k], properties: {k: {type: string}}}}}}`,
			want: at + `.properties[a].items.x-kubernetes-sensitive-data: Forbidden: must not be used for items of a list with x-kubernetes-list-type=map`},
		"items of a set": {schema: `{type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: string, ` + mark + `}}}}`,
			want: at + `.properties[a].items.x-kubernetes-sensitive-data: Forbidden: must not be used in items of a list with x-kubernetes-list-type=set`},
		"a set": {schema: `{type: object, properties: {a: {type: array, ` + mark + `, x-kubernetes-list-type: set, items: {type: string}}}}`,
			want: at + `.properties[a].x-kubernetes-list-type: Invalid value: "set": must be atomic in a sensitive field`},
		"beside columns that show it": {version: `additionalPrinterColumns: [{name: a, type: string, jsonPath: .a}, {name: b, type: string, jsonPath: .m},
			{name: c, type: string, jsonPath: ..x}, {name: d, type: string, jsonPath: .b}], `,
			schema: `{type: object, properties: {a: {type: string, ` + mark + `}, b: {type: string}, m: {type: object, properties: {x: {type: string, ` + mark + `}}}}}`,
			want: `spec.versions[0].additionalPrinterColumns[0].jsonPath: Invalid value: ".a": must not point to a sensitive field
spec.versions[0].additionalPrinterColumns[1].jsonPath: Invalid value: ".m": must not point to a value with a sensitive field in it
spec.versions[0].additionalPrinterColumns[2].jsonPath: Invalid value: "..x": must not point to a sensitive field`},
		"the replicas": {version: `subresources: {scale: {specReplicasPath: .spec.reps, statusReplicasPath: .status.reps}}, `,
			schema: `{type: object, properties: {spec: {type: object, properties: {reps: {type: integer, ` + mark + `}}},
				status: {type: object, properties: {reps: {type: integer}}}}}`,
			want: `spec.versions[0].subresources.scale.specReplicasPath: Invalid value: ".spec.reps": must not point to a sensitive field`},
		"messages made of values": {schema: `{type: object, x-kubernetes-validations: [{rule: "true", messageExpression: "'a'"}], properties: {
			a: {type: string, ` + mark + `, x-kubernetes-validations: [{rule: "true", messageExpression: "self"}]},
			b: {type: string, x-kubernetes-validations: [{rule: "true", messageExpression: "self"}, {rule: "true", message: m}]}}}`,
			want: at + `.properties[a].x-kubernetes-validations[0].messageExpression: Forbidden: must not be used where self is, has or is part of a sensitive field: use message
` + at + `.x-kubernetes-validations[0].messageExpression: Forbidden: must not be used where self is, has or is part of a sensitive field: use message`},
	} {
		obj := definitionWith(t, test.schema, test.version)
		if unknown, err := rules.Decode(obj); len(unknown) > 0 || err != nil {
			t.Errorf("%s: %v, %v", name, unknown, err)
		}
		var got []string
		for _, e := range rules.Validate(t.Context(), obj) {
			if !strings.Contains(e.Error(), "implicitly specified") {
				got = append(got, e.Error())
			}
		}
		slices.Sort(got)
		if text := strings.Join(got, "\n"); text != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, test.want)
		}
	}
}

func TestKeepSensitive(t *testing.T) {
	old := definitionWith(t, `{type: object, properties: {a: {type: string, `+mark+`}, l: {type: array, items: {type: object,
		additionalProperties: {type: string, `+mark+`}}}, b: {type: string}, gone: {type: string, `+mark+`}}}`, "")
	now := definitionWith(t, `{type: object, properties: {a: {type: string}, l: {type: array, items: {type: object,
		additionalProperties: {type: string, x-kubernetes-sensitive-data: false}}}, b: {type: string}}}`, "")
	kept := KeepSensitive(now, old)
	if want := []string{"spec.versions[0].schema.openAPIV3Schema.properties[a]"}; !slices.Equal(kept, want) {
		t.Errorf("kept %v, want %v", kept, want)
	}
	if !MentionsSensitive(now) || !slices.Equal(KeepSensitive(now, old), nil) {
		t.Error("it is not kept, or kept again")
	}
}

func TestMarkSensitive(t *testing.T) {
	resource := func(schema string) *catalog.Resource {
		obj := definitionWith(t, schema, "")
		raw, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		def, err := DecodeJSON(raw)
		if err != nil {
			t.Fatal(err)
		}
		source := func() ([]byte, error) { return raw, nil }
		r, err := Resource(def, 1, source)
		if err != nil {
			t.Fatal(err)
		}
		MarkSensitive(r, raw, source)
		return r
	}
	if r := resource(`{type: object, description: about x-kubernetes-sensitive-data}`); r.Sensitive || r.Storage.Sensitive != nil {
		t.Error("a definition without the keyword is looked at")
	}
	for schema, want := range map[string]sensitive.Relation{
		`{type: object, properties: {a: {type: string, x-kubernetes-sensitive-data: false}}}`: sensitive.Apart,
		`{type: object, properties: {a: {type: string, ` + mark + `}}}`:                       sensitive.Within,
	} {
		r := resource(schema)
		fields, err := r.Storage.SensitiveFields()
		if err != nil || !r.Sensitive || fields.Find("a") != want {
			t.Errorf("%s: %v, %v", schema, fields, err)
		}
		sch, err := r.Storage.Schema()
		if err != nil || sch.Root().Properties["a"].Sensitive != (want == sensitive.Within) {
			t.Errorf("%s: the schema does not know it: %v", schema, err)
		}
	}
}

func TestUnmarkedVersions(t *testing.T) {
	obj := definitionWith(t, `{type: object, properties: {a: {type: string, `+mark+`}}}`, "")
	spec := obj["spec"].(map[string]any)
	spec["versions"] = append(spec["versions"].([]any), map[string]any{
		"name": "v2", "served": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
	})
	if got := sensitiveWarnings(obj); got != nil {
		t.Errorf("without a webhook: %v", got)
	}
	spec["conversion"] = map[string]any{"strategy": "Webhook"}
	const want = "no field of version v2 is marked with x-kubernetes-sensitive-data, but fields of other versions are: " +
		"if conversion gives them other names, they are shown there"
	if got := sensitiveWarnings(obj); !slices.Equal(got, []string{want}) {
		t.Errorf("%v, want %s", got, want)
	}
}
