package codec

import "maps"

// Clone returns a copy of v, decoded JSON, that shares no map and no list with it.
func Clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return CloneObject(v)
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Clone(item)
		}
		return out
	}
	return v
}

// CloneObject is Clone of an object.
func CloneObject(obj map[string]any) map[string]any {
	// Copying the whole map and then replacing nested values is faster than inserting field by field.
	out := maps.Clone(obj)
	for name, v := range obj {
		switch v.(type) {
		case map[string]any, []any:
			out[name] = Clone(v)
		}
	}
	return out
}

// Equal reports whether two values, decoded JSON, are the same. An integer is not the float of its value; nil and empty
// containers are the same.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, v := range a {
			if w, ok := b[name]; !ok || !Equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i, v := range a {
			if !Equal(v, b[i]) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}
