package crd

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestNormalizeUnknown(t *testing.T) {
	obj := fromYAML(t, cronTab)
	obj["foo"] = int64(1)
	spec := obj["spec"].(map[string]any)
	spec["bar"] = map[string]any{"x": int64(1)}
	v := spec["versions"].([]any)[1].(map[string]any)
	v["Served"] = true
	root := dig(v, "schema", "openAPIV3Schema").(map[string]any)
	root["properties"].(map[string]any)["list"] = map[string]any{
		"typ": "array", "items": map[string]any{"typ": "string"},
	}
	dig(obj, "metadata").(map[string]any)["nme"] = "x"
	unknown, err := Normalize(obj)
	want := []string{"foo", "metadata.nme", "spec.bar", "spec.versions[1].Served",
		"spec.versions[1].schema.openAPIV3Schema.properties.list.typ"}
	if err != nil || !slices.Equal(unknown, want) {
		t.Errorf("%v %q", err, unknown)
	}
	if again, err := Normalize(obj); err != nil || len(again) > 0 {
		t.Errorf("not gone: %v %v", again, err)
	}
	if items := dig(root, "properties", "list", "items").(map[string]any); len(items) > 0 {
		t.Errorf("unknown fields of items stay: %v", items)
	}
}

func TestNormalizeTypes(t *testing.T) {
	for _, test := range []struct{ path, value, want string }{
		{"spec.versions", `"v1"`,
			"json: cannot unmarshal string into Go struct field CustomResourceDefinitionSpec.spec.versions of type []v1.CustomResourceDefinitionVersion"},
		{"spec.group", `5`,
			"json: cannot unmarshal number into Go struct field CustomResourceDefinitionSpec.spec.group of type string"},
		{"metadata.creationTimestamp", `"yesterday"`,
			`parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`},
	} {
		obj := fromYAML(t, cronTab)
		at := obj
		path := strings.Split(test.path, ".")
		for _, name := range path[:len(path)-1] {
			at = at[name].(map[string]any)
		}
		at[path[len(path)-1]] = object(t, []byte(`{"v":`+test.value+`}`))["v"]
		if _, err := Normalize(obj); err == nil || err.Error() != test.want {
			t.Errorf("%s: %v", test.path, err)
		}
	}
}

// TestRawValuesStay: defaults, enums and examples are values of others, and stay as they are written.
func TestRawValuesStay(t *testing.T) {
	raw := `{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"default":{"z":0,"a":null,"b":[]},"enum":[null,1.5,""],"example":false,"maximum":1,"minLength":0,"nullable":false}}}]}}`
	obj := object(t, []byte(raw))
	if _, err := Normalize(obj); err != nil {
		t.Fatal(err)
	}
	version := dig(obj, "spec", "versions").([]any)[0].(map[string]any)
	want := `{"default":{"a":null,"b":[],"z":0},"enum":[null,1.5,""],"example":false,"maximum":1,"minLength":0}`
	if got := string(encode(t, dig(version, "schema", "openAPIV3Schema"))); got != want {
		t.Errorf("got %s", got)
	}
}

// TestUnknownKeywords: OpenAPI has keywords that the schemas of definitions do not have at all.
func TestUnknownKeywords(t *testing.T) {
	obj := fromYAML(t, cronTab)
	version := dig(obj, "spec", "versions").([]any)[0].(map[string]any)
	s := dig(version, "schema", "openAPIV3Schema").(map[string]any)
	want := []string{}
	for _, keyword := range []string{"const", "deprecated", "discriminator", "readOnly", "writeOnly", "xml"} {
		s[keyword] = true
		want = append(want, "spec.versions[0].schema.openAPIV3Schema."+keyword)
	}
	got, err := Normalize(obj)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %q", err, got)
	}
	if _, ok := s["readOnly"]; ok {
		t.Error("it is still there")
	}
}

// TestSameSchemaSeesAllFields changes each field of a schema and expects sameSchema to detect it.
func TestSameSchemaSeesAllFields(t *testing.T) {
	for i := range reflect.TypeFor[apiextensionsv1.JSONSchemaProps]().NumField() {
		var a, b apiextensionsv1.JSONSchemaProps
		f := reflect.ValueOf(&b).Elem().Field(i)
		set(f)
		if sameSchema(&a, &b) || !sameSchema(&b, &b) {
			t.Errorf("%s is not compared", reflect.TypeOf(a).Field(i).Name)
		}
	}
	rule := apiextensionsv1.ValidationRule{}
	for i := range reflect.TypeOf(rule).NumField() {
		other := rule
		set(reflect.ValueOf(&other).Elem().Field(i))
		if sameRule(rule, other) {
			t.Errorf("rule's %s is not compared", reflect.TypeOf(rule).Field(i).Name)
		}
	}
}

// set sets v to a value other than its zero value.
func set(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), reflect.Zero(v.Type().Elem()))
	default:
		panic(v.Kind())
	}
}

// FuzzDecodeHead checks that any bytes give a definition or an error, and that a definition's head agrees with the
// whole.
func FuzzDecodeHead(f *testing.F) {
	f.Add(encode(f, fromYAML(f, cronTab)))
	f.Add([]byte(`{"spec":{"versions":[{"schema":{}},{"schema":[[]]},null]},"metadata":{"managedFields":[1]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		head, err := DecodeWithoutSchemas(raw)
		if err != nil {
			return
		}
		_, _ = DecodeSchema(raw, 0)
		whole, err := DecodeJSON(raw)
		if err != nil {
			return // skipped parts may be invalid
		}
		whole.ManagedFields = nil
		for i := range whole.Spec.Versions {
			whole.Spec.Versions[i].Schema = nil
		}
		if !reflect.DeepEqual(head, whole) {
			t.Errorf("head %+v\nwhole %+v", head, whole)
		}
	})
}
