package apply

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// The apiVersion and kind in the managedFields of a Scale.
const (
	scaleAPIVersion = "autoscaling/v1"
	scaleKind       = "Scale"
)

// NewScaleOwnership returns the ownership of autoscaling/v1 Scale objects, for /scale of any resource.
//
// A write to /scale first copies ScaleEntries of the object to the Scale, then runs Update or Apply of this ownership,
// and finally writes the result back with TakeScaleEntries.
func NewScaleOwnership() *Ownership {
	replicas := &schema.Node{Type: "object", Properties: map[string]*schema.Node{"replicas": intNode}}
	typ := newObjectType(rootOf(&schema.Node{Type: "object", Properties: map[string]*schema.Node{
		"spec": replicas,
		"status": {Type: "object", Properties: map[string]*schema.Node{
			"replicas": intNode, "selector": stringNode,
		}},
	}}, false))
	return &Ownership{
		group: "autoscaling", kind: scaleKind, apiVersion: scaleAPIVersion, subresource: "scale",
		types: func(apiVersion string) (*objectType, error) {
			if apiVersion != scaleAPIVersion {
				return nil, errNoVersion{apiVersion}
			}
			return typ, nil
		},
	}
}

// ScaleEntries returns managedFields of the Scale of obj, decoded JSON: the entries of obj that own its replicas.
func ScaleEntries(r *catalog.Resource, v *catalog.Version, obj map[string]any) ([]any, error) {
	entries, err := scaleHandler(r, v, obj).ToSubresource()
	if err != nil {
		return nil, err
	}
	scale := &unstructured.Unstructured{Object: map[string]any{}}
	scale.SetManagedFields(entries)
	list, _ := storedEntries(scale.Object)
	return list, nil
}

// TakeScaleEntries merges the managedFields of a Scale into obj, the scaled object, which has its previous ones.
func TakeScaleEntries(r *catalog.Resource, v *catalog.Version, obj, scale map[string]any) error {
	entries, err := scaleHandler(r, v, obj).ToParent(entriesOf(scale))
	if err != nil {
		return err
	}
	(&unstructured.Unstructured{Object: obj}).SetManagedFields(entries)
	return nil
}

func scaleHandler(r *catalog.Resource, v *catalog.Version, obj map[string]any) *managedfields.ScaleHandler {
	paths := managedfields.ResourcePathMappings{}
	for _, v := range r.Versions {
		var path fieldpath.Path
		if v.Scale != nil {
			for _, name := range strings.Split(strings.TrimPrefix(v.Scale.SpecReplicasPath, "."), ".") {
				path = append(path, fieldpath.PathElement{FieldName: &name})
			}
		}
		paths[r.APIVersion(v)] = path
	}
	return managedfields.NewScaleHandler(entriesOf(obj), gvk.GroupVersion{Group: r.Group, Version: v.Name}, paths)
}
