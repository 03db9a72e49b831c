package sensitive

import (
	"strings"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// MaskPatch masks a client's patch for the audit log: a JSON patch, or the object of a merge patch or an apply. Any
// other document is masked as a whole.
func (f *Fields) MaskPatch(doc []byte) []byte {
	v, err := codec.DecodeJSON(doc)
	if err == nil {
		switch v := v.(type) {
		case map[string]any:
			return codec.AppendJSON(nil, f.MaskObject(v))
		case []any:
			return codec.AppendJSON(nil, f.MaskOperations(v))
		case nil:
			return doc
		}
	}
	return codec.AppendString(nil, Omitted)
}

// MaskOperations returns the operations of a JSON patch with sensitive values masked.
func (f *Fields) MaskOperations(ops []any) []any {
	out := make([]any, len(ops))
	for i, v := range ops {
		op, ok := v.(map[string]any)
		if !ok {
			out[i] = Omitted
			continue
		}
		op = shallow(op)
		if value, ok := op["value"]; ok {
			path, _ := op["path"].(string)
			op["value"] = f.maskAt(path, value)
		}
		out[i] = op
	}
	return out
}

// maskAt masks the value that an operation puts where a JSON pointer leads to.
func (f *Fields) maskAt(pointer string, v any) any {
	if pointer == "" {
		if obj, ok := v.(map[string]any); ok {
			return f.MaskObject(obj)
		}
		return f.Mask(v)
	}
	names := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, name := range names {
		names[i] = unescape.Replace(name)
	}
	if names[0] == "metadata" {
		obj := any(v)
		for i := len(names) - 1; i >= 0; i-- {
			obj = map[string]any{names[i]: obj}
		}
		return dig(f.MaskObject(obj.(map[string]any)), names)
	}
	return f.At(names...).Mask(v)
}

// dig returns the value at a path of names, or Omitted if the mask has removed it.
func dig(v any, names []string) any {
	for _, name := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return Omitted
		}
		if v, ok = m[name]; !ok {
			return Omitted
		}
	}
	return v
}

// unescape reverses the escaping of names in JSON pointers (RFC 6901, section 4).
var unescape = strings.NewReplacer("~1", "/", "~0", "~")
