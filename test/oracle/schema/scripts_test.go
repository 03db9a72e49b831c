package schema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestScripts compares ours with upstream on the cases that internal/object/schema holds with texts.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("../../../internal/object/schema/testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var script []struct {
			Name   string
			Schema *apiextensionsv1.JSONSchemaProps
			Cases  []struct {
				Name        string
				Object, Old json.RawMessage
			}
		}
		if err := yaml.Unmarshal(data, &script); err != nil {
			t.Fatal(err)
		}
		for _, group := range script {
			up, err := newUpstream(group.Schema, false)
			if err != nil {
				t.Fatal(err)
			}
			our, err := schema.Compile(group.Schema, schema.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range group.Cases {
				t.Run(group.Name+"/"+c.Name, func(t *testing.T) {
					x := &comparison{T: t, props: group.Schema, name: c.Name, up: up, our: our}
					obj, ok := x.shape(decode(c.Object).(map[string]any))
					if !ok {
						return
					}
					x.errors("create", obj, nil, our.Validate(obj, nil), up.validate(obj, nil))
					if c.Old != nil {
						old := decode(c.Old).(map[string]any)
						x.errors("update", obj, old, our.Validate(obj, old), up.validate(obj, old))
						x.errors("status", obj, old, statusErrors(our, obj, old), up.validateStatus(obj, old))
					}
				})
			}
		}
	}
}
