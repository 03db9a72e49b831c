package sensitive

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// MaskObject returns a custom object for callers without permission to read sensitive fields. It omits the annotation
// of kubectl apply, which may contain all of them, and the parts of managedFields inside sensitive values. obj is not
// changed, and the result shares values with it.
func (f *Fields) MaskObject(obj map[string]any) map[string]any {
	if f == nil || obj == nil {
		return obj
	}
	out := shallow(obj)
	for name, v := range obj {
		if !system(name) {
			out[name] = f.Property(name).Mask(v)
		}
	}
	meta, ok := obj["metadata"].(map[string]any)
	if !ok {
		return out
	}
	shown := shallow(meta)
	if annotations, ok := meta["annotations"].(map[string]any); ok && annotations[lastApplied] != nil {
		rest := shallow(annotations)
		delete(rest, lastApplied)
		shown["annotations"] = rest
		if len(rest) == 0 {
			delete(shown, "annotations")
		}
	}
	if entries, ok := meta["managedFields"].([]any); ok {
		shown["managedFields"] = f.maskManaged(entries)
	}
	out["metadata"] = shown
	return out
}

const lastApplied = corev1.LastAppliedConfigAnnotation

// system reports whether a top-level field is common to all objects; such fields are never sensitive.
func system(name string) bool { return name == "metadata" || name == "apiVersion" || name == "kind" }

// Mask returns a value with Omitted in the place of sensitive values. null stays null. v is not changed, and the result
// shares values with it.
func (f *Fields) Mask(v any) any {
	switch {
	case f == nil || v == nil:
		return v
	case f.whole:
		return Omitted
	}
	switch v := v.(type) {
	case map[string]any:
		out := shallow(v)
		for name, child := range v {
			out[name] = f.Property(name).Mask(child)
		}
		return out
	case []any:
		if f.items == nil {
			return v
		}
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = f.items.Mask(child)
		}
		return out
	}
	return v
}

// maskManaged removes from the entries of managedFields the parts inside sensitive values: the names of fields, and the
// items of sets, which contain their values.
func (f *Fields) maskManaged(entries []any) []any {
	out := make([]any, len(entries))
	for i, v := range entries {
		out[i] = v
		entry, ok := v.(map[string]any)
		if !ok {
			continue
		}
		if set, ok := entry["fieldsV1"].(map[string]any); ok {
			entry = shallow(entry)
			entry["fieldsV1"] = f.maskSet(set)
			out[i] = entry
		}
	}
	return out
}

// maskSet is maskManaged for a set of fields, as FieldsV1 writes it: "f:name" for a field, "k:", "v:" and "i:" for an
// item of a list.
func (f *Fields) maskSet(set map[string]any) map[string]any {
	if f == nil {
		return set
	}
	out := make(map[string]any, len(set))
	if f.whole {
		if set["."] != nil {
			out["."] = set["."]
		}
		return out
	}
	for key, v := range set {
		below := f.items
		if name, isField := strings.CutPrefix(key, "f:"); isField {
			below = f.Property(name)
		} else if below != nil && below.revealsItem(key) {
			continue
		}
		if child, ok := v.(map[string]any); ok {
			v = below.maskSet(child)
		}
		out[key] = v
	}
	return out
}

// revealsItem reports whether the name of a list's item in a set of fields has something sensitive in it. f is the
// item.
func (f *Fields) revealsItem(name string) bool {
	if strings.HasPrefix(name, "v:") {
		return true
	}
	text, isKey := strings.CutPrefix(name, "k:")
	if !isKey {
		return false
	}
	keys, err := codec.DecodeJSON([]byte(text))
	if m, ok := keys.(map[string]any); ok && err == nil {
		for key := range m {
			if f.Property(key) != nil {
				return true
			}
		}
		return false
	}
	return true
}

// MaskJSON is MaskObject for encoded JSON.
func (f *Fields) MaskJSON(raw []byte) ([]byte, error) {
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		return nil, err
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return raw, nil
	}
	return codec.AppendJSON(nil, f.MaskObject(obj)), nil
}

func shallow(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for key, v := range m {
		out[key] = v
	}
	return out
}
