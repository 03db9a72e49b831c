package convert

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// twoVersions returns a kind with spec.a and a default in v1, and spec.b in v2.
func twoVersions() *catalog.Resource {
	version := func(name, field string) *catalog.Version {
		return &catalog.Version{Name: name, Source: func() (*apiextensionsv1.JSONSchemaProps, error) {
			return &apiextensionsv1.JSONSchemaProps{Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
						field:  {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"d"`)}},
						"both": {Type: "string"},
					}},
				}}, nil
		}}
	}
	v1, v2 := version("v1", "a"), version("v2", "b")
	return &catalog.Resource{
		Group: "example.com", Plural: "things", Kind: "Thing", Versions: []*catalog.Version{v2, v1}, Storage: v1,
	}
}

func TestNone(t *testing.T) {
	r := twoVersions()
	v1, v2 := r.Storage, r.Versions[0]
	stored := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "spec": map[string]any{"both": "x", "gone": "y"},
	}

	obj := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "spec": map[string]any{"both": "x", "gone": "y"},
	}
	if err := Present(r, v1, obj); err != nil {
		t.Fatal(err)
	}
	if spec := obj["spec"].(map[string]any); spec["a"] != "d" || spec["gone"] != nil || spec["both"] != "x" {
		t.Errorf("a stored object is shown with spec %v", spec)
	}
	if err := Present(r, v2, stored); err != nil {
		t.Fatal(err)
	}
	if spec := stored["spec"].(map[string]any); stored["apiVersion"] != "example.com/v2" || spec["a"] != nil ||
		spec["both"] != "x" {
		t.Errorf("in the other version it is %v", stored)
	}
	out, err := New(Options{}).Convert(t.Context(), r, v1, v2, obj)
	if err != nil || out["apiVersion"] != "example.com/v2" || obj["apiVersion"] != "example.com/v1" {
		t.Errorf("converted %v, %v; the original is now %v", out, err, obj)
	}
}

// TestPresentRepairsGeneration checks that objects stored before generations were counted get generation 1.
func TestPresentRepairsGeneration(t *testing.T) {
	r := twoVersions()
	for _, c := range []struct {
		definition string
		stored     any
		want       any
	}{{"things.example.com", nil, int64(1)}, {"things.example.com", int64(0), int64(1)},
		{"things.example.com", int64(7), int64(7)}, {"", nil, nil}} {
		r.Definition.Name = c.definition
		meta := map[string]any{"name": "a"}
		if c.stored != nil {
			meta["generation"] = c.stored
		}
		if err := Present(r, r.Storage,
			map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": meta}); err != nil {
			t.Fatal(err)
		}
		if meta["generation"] != c.want {
			t.Errorf("definition %q, stored %v: generation %v, want %v", c.definition, c.stored, meta["generation"],
				c.want)
		}
	}
}

func TestPresentSalvagesMetadata(t *testing.T) {
	r := twoVersions()
	obj := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": map[string]any{
			"name": "a", "labels": map[string]any{"good": "x", "bad": int64(1)}, "unknown": true,
		}}
	if err := Present(r, r.Storage, obj); err != nil {
		t.Fatal(err)
	}
	meta := obj["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	if meta["name"] != "a" || meta["unknown"] != nil || labels["bad"] != nil {
		t.Errorf("metadata is %v", meta)
	}
}
