package compat

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func decode(t *testing.T, text string, v any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// lines returns the findings, sorted, in the form "class version path: text".
func lines(found []Finding) []string {
	all := make([]string, len(found))
	for i, f := range found {
		words := strings.Fields(fmt.Sprintf("%s %s %s", f.Class, f.Version, f.Path))
		all[i] = strings.Join(words, " ") + ": " + f.Text
	}
	slices.Sort(all)
	return all
}

// TestFields runs the cases of testdata/fields.txt.
func TestFields(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range strings.Split(string(text), "\n== ")[1:] {
		name, body, _ := strings.Cut(one, "\n")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := strings.Split("\n"+body, "\n--\n")
			if len(parts) != 3 {
				t.Fatalf("%d parts", len(parts))
			}
			c := &comparison{}
			var was, is apiextensionsv1.JSONSchemaProps
			decode(t, parts[0], &was)
			decode(t, parts[1], &is)
			c.field(&was, &is, "f", "")
			want := strings.Split(strings.TrimSpace(parts[2]), "\n")
			if got := lines(c.found); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

const definition = `
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Ship, plural: ships}
  conversion: {strategy: None}
  versions:
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: &s {
      type: object, properties: {a: {type: string}, b: {type: string}}}}}},
     subresources: {status: {}, scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.a}},
     selectableFields: [{jsonPath: .spec.a}]}
  - {name: v1, served: true, schema: {openAPIV3Schema: {type: object, properties: {spec: *s}}}}
`

// TestDefinitions checks the findings outside of fields, and between versions.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	const lost = "existingFieldRemoval v1beta1 -> v1 spec.b: the field is removed"
	for _, c := range []struct {
		name   string
		change func(*apiextensionsv1.CustomResourceDefinition)
		want   []string
	}{
		{"nothing", func(*apiextensionsv1.CustomResourceDefinition) {}, nil},
		{"scope and names", func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Scope, d.Spec.Names.Kind = "Cluster", "Boat"
		}, []string{`names: names.kind changes from "Ship" to "Boat"`, "scope: the scope changes from Namespaced to Cluster"}},
		{"a version less", func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions = d.Spec.Versions[1:]
		}, []string{"servedVersionRemoval: the version v1beta1 is no longer served",
			"storedVersionRemoval: the version v1beta1 is removed, and objects may be stored in it"}},
		{"a version that is not served", func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions[0].Served = false
		}, []string{"servedVersionRemoval: the version v1beta1 is no longer served"}},
		{"subresources", func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions[0].Subresources = nil
			d.Spec.Versions[0].SelectableFields = nil
			d.Spec.Versions[1].Subresources = &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		}, []string{"selectableFields v1beta1 spec.a: the field selector is removed",
			"subresources v1: the subresource status is added: writes of the object no longer change its status",
			"subresources v1beta1: the subresource scale is removed",
			"subresources v1beta1: the subresource status is removed: controllers cannot write it any more"}},
		{"scale", func(d *apiextensionsv1.CustomResourceDefinition) {
			path := ".status.s"
			d.Spec.Versions[0].Subresources.Scale.LabelSelectorPath = &path
		}, []string{"subresources v1beta1: the paths of the subresource scale change"}},
		{"a field that one version lacks", func(d *apiextensionsv1.CustomResourceDefinition) {
			delete(d.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "b")
		}, []string{"existingFieldRemoval v1 spec.b: the field is removed", lost}},
		{"with a conversion", func(d *apiextensionsv1.CustomResourceDefinition) {
			delete(d.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "b")
			d.Spec.Conversion.Strategy = "Webhook"
		}, []string{"existingFieldRemoval v1 spec.b: the field is removed"}},
		{"a version more", func(d *apiextensionsv1.CustomResourceDefinition) {
			more := d.Spec.Versions[1].DeepCopy()
			more.Name, more.Schema.OpenAPIV3Schema.Properties = "v2", nil
			d.Spec.Versions = append(d.Spec.Versions, *more)
		}, []string{"existingFieldRemoval v1 -> v2 spec: the field is removed",
			"existingFieldRemoval v1beta1 -> v2 spec: the field is removed"}},
		{"no schema", func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions[0].Schema, d.Spec.Versions[0].Served = nil, false
		}, []string{"existingFieldRemoval v1beta1 spec: the field is removed",
			"servedVersionRemoval: the version v1beta1 is no longer served",
			"type v1beta1: the type changes from object to any"}},
	} {
		var was, is apiextensionsv1.CustomResourceDefinition
		decode(t, definition, &was)
		decode(t, definition, &is)
		c.change(&is)
		if got := lines(Compare(&was, &is)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s\nnot\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	var was, is apiextensionsv1.CustomResourceDefinition
	decode(t, definition, &was)
	decode(t, definition, &is)
	delete(was.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "b")
	is = *was.DeepCopy()
	if got := Compare(&was, &is); len(got) > 0 {
		t.Errorf("an old difference between versions is found again: %v", got)
	}
	if got := lines(Removed(&was)); got[0] != "definitionRemoval: the definition of Ship is removed, with all its objects" {
		t.Error(got)
	}
}

// TestPolicy checks levels and exemptions, and the errors of a policy.
func TestPolicy(t *testing.T) {
	t.Parallel()
	p, err := ReadPolicy([]byte(`
classes: {enum: warning, description: error, default: off, type: "off"}
exemptions:
- {definition: ships.example.com, class: existingFieldRemoval, version: v1, path: spec.b, reason: unused since 0.3}
- {class: scope, reason: nobody has it}
`))
	if err != nil {
		t.Fatal(err)
	}
	const ships = "ships.example.com"
	for _, c := range []struct {
		name  string
		f     Finding
		level Level
		index int
	}{
		{ships, Finding{Class: Enum}, Warning, -1},
		{ships, Finding{Class: Description}, Error, -1},
		{ships, Finding{Class: Loosening}, Off, -1},
		{ships, Finding{Class: Required}, Error, -1},
		{ships, Finding{Class: EnumAddition}, Warning, -1},
		{ships, Finding{Class: Default}, Off, -1},
		{ships, Finding{Class: Type}, Off, -1},
		{ships, Finding{Class: ExistingFieldRemoval, Version: "v1", Path: "spec.b"}, Off, 0},
		{ships, Finding{Class: ExistingFieldRemoval, Version: "v1", Path: "spec.c"}, Error, -1},
		{ships, Finding{Class: ExistingFieldRemoval, Version: "v2", Path: "spec.b"}, Error, -1},
		{"other", Finding{Class: ExistingFieldRemoval, Version: "v1", Path: "spec.b"}, Error, -1},
		{"other", Finding{Class: Scope}, Off, 1},
	} {
		if level, i := p.Level(c.name, &c.f); level != c.level || i != c.index {
			t.Errorf("%s %+v: %s, %d", c.name, c.f, level, i)
		}
	}
	for text, want := range map[string]string{
		"classes: {enums: off}": `no class "enums"`, "classes: {enum: none}": `no level "none"`,
		"exemptions: [{class: enum}]": "exemptions[0].reason is missing", "levels: {}": "unknown field",
		"exemptions: [{class: x, reason: y}]": `exemptions[0].class: there is no class "x"`,
	} {
		if _, err := ReadPolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %s", text, err, want)
		}
	}
	for class := range defaults {
		if err := CheckClass(class); err != nil {
			t.Error(err)
		}
	}
}

// TestObjects checks the findings about stored objects: invalid ones, ones with removed fields, and objects that were
// invalid before.
func TestObjects(t *testing.T) {
	t.Parallel()
	var was, is apiextensionsv1.CustomResourceDefinition
	decode(t, definition, &was)
	decode(t, definition, &is)
	spec := is.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"]
	delete(spec.Properties, "b")
	spec.Properties["a"] = apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: new(int64(3))}
	spec.XValidations = apiextensionsv1.ValidationRules{{Rule: "!has(self.a) || self.a != 'no'", Message: "is no"}}
	is.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	all := NewObjects(&was, &is)
	if len(all) != 1 {
		t.Fatalf("%d checks", len(all))
	}
	o := all[0]
	for _, object := range []struct{ namespace, name, spec string }{
		{"", "fine", "{a: abc}"}, {"x", "long", "{a: abcd, b: x}"}, {"x", "no", "{a: 'no'}"}, {"x", "empty", "{}"},
		{"x", "wrong", "{a: 1}"}, {"x", "more", "{b: y}"}, {"", "l2", "{a: abcd}"}, {"", "l3", "{a: abcde}"},
	} {
		obj := map[string]any{}
		decode(t, `{apiVersion: example.com/v1, kind: Ship, metadata: {name: x, labels: {a: b}}, spec: `+object.spec+"}", &obj)
		if err := o.Check(object.namespace, object.name, obj); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"invalidObjects v1: 4 of 8 stored objects become invalid: x/long: spec.a: Too long: may not be more than 3 bytes; " +
			`x/no: spec: Invalid value: is no; l2: spec.a: Too long: may not be more than 3 bytes`,
		"prunedObjects v1: 2 of 8 stored objects lose fields: x/long: loses spec.b; x/more: loses spec.b",
	}
	if got := lines(o.Findings()); !slices.Equal(got, want) || o.Checked() != 8 {
		t.Errorf("got\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if is.Spec.Versions = is.Spec.Versions[:0]; NewObjects(&was, &is) != nil {
		t.Error("there is no common version")
	}
}
