package builtin

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// definition is the definition of a type in internal/kinds/schemas.
type definition struct {
	Ref                  string                 `json:"$ref"`
	Description          string                 `json:"description"`
	Type                 string                 `json:"type"`
	Format               string                 `json:"format"`
	Required             []string               `json:"required"`
	Properties           map[string]*definition `json:"properties"`
	AdditionalProperties *definition            `json:"additionalProperties"`
	Items                *definition            `json:"items"`
	PreserveUnknown      bool                   `json:"x-kubernetes-preserve-unknown-fields"`
	IntOrString          bool                   `json:"x-kubernetes-int-or-string"`
	ListType             string                 `json:"x-kubernetes-list-type"`
	ListMapKeys          []string               `json:"x-kubernetes-list-map-keys"`
	MapType              string                 `json:"x-kubernetes-map-type"`
	Types                []string               `json:"types"`
}

func definitions(t *testing.T) map[string]*definition {
	t.Helper()
	data, err := os.ReadFile("../../../internal/kinds/schemas/types.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*definition{}
	for line := range strings.Lines(string(data)) {
		name, text, _ := strings.Cut(line, "\t")
		d := &definition{}
		if err := json.Unmarshal([]byte(text), d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d.Types == nil {
			out[name] = d
		}
	}
	return out
}

// TestOpenAPI compares the common types: meta/v1 and apiextensions/v1.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	ours := definitions(t)
	theirs := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef(name) })
	compared := 0
	for _, name := range sortedKeys(ours) {
		d, ok := theirs[name]
		if !ok {
			continue
		}
		compared++
		compareOpenAPI(t, name, ours[name], &d.Schema)
	}
	if compared < 15 {
		t.Errorf("only %d types compared", compared)
	}
}

func compareOpenAPI(t *testing.T, path string, our *definition, their *spec.Schema) {
	if our.Description != their.Description {
		t.Errorf("%s: description\nours   %q\ntheirs %q", path, our.Description, their.Description)
	}
	if our.PreserveUnknown || our.IntOrString {
		return // types that we end early
	}
	if ref := their.Ref.String(); ref != our.Ref {
		// Theirs refers to types that are strings in JSON; ours has their schema in place.
		switch ref {
		case "io.k8s.apimachinery.pkg.apis.meta.v1.Time", "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime":
			if our.Type != "string" || our.Format != "date-time" {
				t.Errorf("%s: a time is %s %s", path, our.Type, our.Format)
			}
		default:
			t.Errorf("%s: refers to %q, theirs to %q", path, our.Ref, ref)
		}
		return
	}
	if len(their.Type) == 0 && our.Type == "" && our.Ref == "" {
		return // any value
	}
	if our.Ref == "" && (len(their.Type) != 1 || their.Type[0] != our.Type || their.Format != our.Format) {
		t.Errorf("%s: type %s %s, theirs %v %s", path, our.Type, our.Format, their.Type, their.Format)
	}
	required := slices.Sorted(slices.Values(their.Required))
	if !slices.Equal(slices.Sorted(slices.Values(our.Required)), required) {
		t.Errorf("%s: required %q, theirs %q", path, our.Required, required)
	}
	for _, e := range []struct {
		name string
		ours any
	}{{"x-kubernetes-list-type", our.ListType}, {"x-kubernetes-map-type", our.MapType}} {
		if theirs, _ := their.Extensions[e.name].(string); theirs != e.ours {
			t.Errorf("%s: %s %q, theirs %q", path, e.name, e.ours, theirs)
		}
	}
	keys := fmt.Sprint(their.Extensions["x-kubernetes-list-map-keys"])
	if keys == "<nil>" {
		keys = "[]"
	}
	if fmt.Sprint(our.ListMapKeys) != keys {
		t.Errorf("%s: keys %v, theirs %v", path, our.ListMapKeys, keys)
	}
	for _, name := range sortedKeys(our.Properties) {
		p, ok := their.Properties[name]
		if !ok {
			t.Errorf("%s.%s: theirs does not have it", path, name)
			continue
		}
		compareOpenAPI(t, path+"."+name, our.Properties[name], &p)
	}
	for name := range their.Properties {
		if our.Properties[name] == nil {
			t.Errorf("%s.%s: only theirs has it", path, name)
		}
	}
	if our.Items != nil {
		compareOpenAPI(t, path+"[]", our.Items, their.Items.Schema)
	}
	if our.AdditionalProperties != nil {
		compareOpenAPI(t, path+"{}", our.AdditionalProperties, their.AdditionalProperties.Schema)
	}
}

// smdType is a type of the structured merge schema that client-go carries.
type smdType struct {
	Name      string   `json:"name"`
	NamedType string   `json:"namedType"`
	Scalar    string   `json:"scalar"`
	List      *smdList `json:"list"`
	Map       *smdMap  `json:"map"`
	// With namedType, ElementRelationship makes the field atomic, regardless of the type.
	ElementRelationship string `json:"elementRelationship"`
}

type smdList struct {
	ElementType         smdType  `json:"elementType"`
	ElementRelationship string   `json:"elementRelationship"`
	Keys                []string `json:"keys"`
}

type smdMap struct {
	Fields []struct {
		Name string  `json:"name"`
		Type smdType `json:"type"`
	} `json:"fields"`
	ElementType         *smdType `json:"elementType"`
	ElementRelationship string   `json:"elementRelationship"`
}

// TestMergeSchema compares list and map types, which decide how field ownership sees objects, for all types.
func TestMergeSchema(t *testing.T) {
	t.Parallel()
	ours := definitions(t)
	compared := 0
	for _, theirs := range mergeSchema(t) {
		our := ours[theirs.Name]
		if our == nil || theirs.Map == nil {
			continue
		}
		compared++
		compareMerge(t, theirs.Name, our, theirs)
	}
	if compared < 15 {
		t.Errorf("only %d types compared", compared)
	}
}

func compareMerge(t *testing.T, path string, our *definition, their smdType) {
	if our == nil {
		t.Errorf("%s: only theirs has it", path)
		return
	}
	if their.NamedType != "" {
		switch their.NamedType[strings.LastIndexByte(their.NamedType, '.')+1:] {
		case "Time", "MicroTime", "FieldsV1", "Quantity", "IntOrString":
			if our.Ref != "" {
				t.Errorf("%s: refers to %q, theirs is a scalar, or whole", path, our.Ref)
			}
		case "__untyped_atomic_":
			if our.Ref == "" && (!our.PreserveUnknown || our.MapType != "atomic") {
				t.Errorf("%s: is not whole", path)
			}
		default:
			if our.Ref != their.NamedType {
				t.Errorf("%s: refers to %q, theirs to %q", path, our.Ref, their.NamedType)
			}
		}
		if their.ElementRelationship == "atomic" && our.MapType != "atomic" {
			t.Errorf("%s: theirs is atomic", path)
		}
		return
	}
	switch {
	case their.Scalar != "":
		want := map[string][]string{
			"string": {"string"}, "numeric": {"integer", "number"}, "boolean": {"boolean"},
		}[their.Scalar]
		if !slices.Contains(want, our.Type) {
			t.Errorf("%s: type %s, theirs %s", path, our.Type, their.Scalar)
		}
	case their.List != nil:
		want := map[string]string{"atomic": "atomic", "": "atomic"}[their.List.ElementRelationship]
		if their.List.ElementRelationship == "associative" {
			if want = "set"; len(their.List.Keys) > 0 {
				want = "map"
			}
		}
		have := our.ListType
		if have == "" {
			have = "atomic"
		}
		if have != want || !reflect.DeepEqual(our.ListMapKeys, their.List.Keys) {
			t.Errorf("%s: list %s %v, theirs %s %v", path, have, our.ListMapKeys, want, their.List.Keys)
		}
		compareMerge(t, path+"[]", our.Items, their.List.ElementType)
	case their.Map != nil && our.AdditionalProperties == nil && len(our.Properties) == 0: // any object
	case their.Map != nil:
		if atomic := their.Map.ElementRelationship == "atomic"; atomic != (our.MapType == "atomic") {
			t.Errorf("%s: map type %q, theirs atomic: %t", path, our.MapType, atomic)
		}
		if their.Map.ElementType != nil {
			compareMerge(t, path+"{}", our.AdditionalProperties, *their.Map.ElementType)
		}
		names := map[string]bool{}
		for _, f := range their.Map.Fields {
			names[f.Name] = true
			if our.Properties[f.Name] == nil {
				t.Errorf("%s.%s: only theirs has it", path, f.Name)
				continue
			}
			compareMerge(t, path+"."+f.Name, our.Properties[f.Name], f.Type)
		}
		for name := range our.Properties {
			if !names[name] {
				t.Errorf("%s.%s: only ours has it", path, name)
			}
		}
	}
}

// mergeSchema reads the schema out of the source of client-go's apply configurations: the package is internal there.
func mergeSchema(t *testing.T) []smdType {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/client-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)),
		"applyconfigurations/internal/internal.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "typed.YAMLObject(`")
	text, _, _ := strings.Cut(rest, "`")
	var doc struct {
		Types []smdType `json:"types"`
	}
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Types
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
