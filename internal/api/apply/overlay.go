package apply

import (
	"fmt"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Overlay returns live with the fields of patch, an apply configuration, merged by the types of version v. No manager
// owns these fields: mutating policies use it. Neither argument is changed; the result may share parts of both.
//
// A patch must not touch atomic values (lists, maps and structs), which can only be replaced as a whole: a client that
// means to change one field would remove the others. Errors are Kubernetes'.
func Overlay(v *catalog.Version, live, patch map[string]any) (map[string]any, error) {
	t, err := typeOf(v)
	if err != nil {
		return nil, err
	}
	patchTyped, err := t.long().FromUnstructured(patch)
	if err != nil {
		return nil, fmt.Errorf("failed to convert patch object to typed object: %w", err)
	}
	if found := atomics(nil, patchTyped.Schema(), patchTyped.TypeRef(), patchTyped.AsValue()); len(found) > 0 {
		return nil,
			fmt.Errorf("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %v",
				strings.Join(found, ", "))
	}
	liveTyped, err := t.long().FromUnstructured(live, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("failed to convert original object to typed object: %w", err)
	}
	merged, err := liveTyped.Merge(patchTyped)
	if err != nil {
		return nil, fmt.Errorf("failed to merge patch: %w", err)
	}
	obj, ok := merged.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("failed to convert typed object to object: it is a %T", merged.AsValue().Unstructured())
	}
	return obj, nil
}

// atomics returns the paths of values in v that are atomic lists, maps or structs.
func atomics(path fieldpath.Path, s *smdschema.Schema, ref smdschema.TypeRef, v value.Value) (found []string) {
	a, ok := s.Resolve(ref)
	if !ok {
		return nil
	}
	below := func(e fieldpath.PathElement) fieldpath.Path {
		return append(path[:len(path):len(path)], e)
	}
	if v.IsMap() && a.Map != nil {
		if a.Map.ElementRelationship == smdschema.Atomic {
			found = append(found, path.String())
		}
		v.AsMap().Iterate(func(key string, child value.Value) bool {
			if f, ok := a.Map.FindField(key); ok {
				found = append(found, atomics(below(fieldpath.PathElement{FieldName: &key}), s, f.Type, child)...)
			}
			return true
		})
	}
	if v.IsList() && a.List != nil {
		if a.List.ElementRelationship == smdschema.Atomic {
			found = append(found, path.String())
		}
		list := v.AsList()
		for i := range list.Length() {
			found = append(found,
				atomics(below(fieldpath.PathElement{Index: &i}), s, a.List.ElementType, list.At(i))...)
		}
	}
	return found
}
