package audit

import (
	"encoding/json"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// withoutManagedFields returns a response without the managedFields of its objects: one object, the items of a list,
// the objects in the rows of a table. Other documents are returned unchanged.
func withoutManagedFields(doc []byte) []byte {
	v, err := codec.DecodeJSON(doc)
	if err != nil {
		return doc
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return doc
	}
	dropManagedFields(obj)
	for _, item := range list(obj["items"]) {
		dropManagedFields(item)
	}
	for _, row := range list(obj["rows"]) {
		if inside, ok := row["object"].(map[string]any); ok {
			dropManagedFields(inside)
		}
	}
	return codec.AppendJSON(nil, obj)
}

func dropManagedFields(obj map[string]any) {
	if meta, ok := obj["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
}

// list returns the elements of v that are objects.
func list(v any) []map[string]any {
	elements, _ := v.([]any)
	var out []map[string]any
	for _, e := range elements {
		if obj, ok := e.(map[string]any); ok {
			out = append(out, obj)
		}
	}
	return out
}

// encodePatch returns a JSON patch as a document.
func encodePatch(steps []operation) ([]byte, error) { return json.Marshal(steps) }
