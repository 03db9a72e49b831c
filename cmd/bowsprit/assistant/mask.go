package assistant

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/openapi"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
)

// masked stands for a value of a Secret.
const masked = "<masked>"

// fields returns the sensitive fields of a kind, or nil. It fails if the server does not publish the kind's schema.
func (t *Tools) fields(r *connect.Resource) (*sensitive.Fields, error) {
	if t.options.ShowSecrets || builtIn(r) {
		return nil, nil
	}
	paths, err := t.discovery.OpenAPIV3().Paths()
	if err != nil {
		return nil, err
	}
	doc, found := paths["apis/"+r.GroupVersion().String()]
	if !found {
		return nil, withoutSchema(r)
	}
	schema, err := kindSchema(doc, r)
	if err != nil {
		return nil, err
	}
	return sensitive.Of(schema), nil
}

func withoutSchema(r *connect.Resource) error {
	return fmt.Errorf("the server publishes no schema of %s, so its sensitive fields are unknown, and the tools "+
		"show these objects only with the flag for secrets", title(r))
}

// kindSchema returns the schema of a kind, from the OpenAPI document of its group and version.
func kindSchema(doc openapi.GroupVersion, r *connect.Resource) (map[string]any, error) {
	data, err := doc.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	var all struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	for _, schema := range all.Components.Schemas {
		kinds, _ := schema["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			m, _ := k.(map[string]any)
			if m["group"] == r.Group && m["version"] == r.Version && m["kind"] == r.Kind {
				return schema, nil
			}
		}
	}
	return nil, withoutSchema(r)
}

// shown returns a copy of an object for the assistant: without managedFields and the annotation of kubectl apply, and
// with masks.
func (t *Tools) shown(obj *unstructured.Unstructured, fields *sensitive.Fields) map[string]any {
	obj = trimmed(obj)
	if t.hidesValues(obj) {
		for _, part := range secretParts {
			maskValues(obj.Object, part)
		}
	}
	return fields.MaskObject(obj.Object)
}

// trimmed returns a copy of an object without the parts that repeat others.
func trimmed(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	unstructured.RemoveNestedField(obj.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	if len(obj.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations")
	}
	return obj
}

// secretParts are the fields of a Secret with values.
var secretParts = []string{"data", "stringData"}

// hidesValues reports whether an object is a Secret with values to mask.
func (t *Tools) hidesValues(obj *unstructured.Unstructured) bool {
	kind := obj.GroupVersionKind()
	return !t.options.ShowSecrets && kind.Group == "" && kind.Kind == "Secret"
}

// maskValues masks the values of a field of a Secret.
func maskValues(secret map[string]any, part string) {
	switch values := secret[part].(type) {
	case nil:
	case map[string]any:
		for key := range values {
			values[key] = masked
		}
	default:
		secret[part] = masked
	}
}
