package sensitive

import (
	"strings"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// MaskAnswer masks a response: an object, its metadata, a list, or a table, which has no sensitive cells.
func (f *Fields) MaskAnswer(doc []byte) []byte {
	v, err := codec.DecodeJSON(doc)
	answer, ok := v.(map[string]any)
	if err != nil || !ok {
		return codec.AppendString(nil, Omitted)
	}
	rows, isTable := answer["rows"].([]any)
	items, isList := answer["items"].([]any)
	kind, _ := answer["kind"].(string)
	switch {
	case isTable && kind == "Table":
		for _, row := range rows {
			if row, ok := row.(map[string]any); ok {
				if obj, ok := row["object"].(map[string]any); ok {
					row["object"] = f.MaskObject(obj)
				}
			}
		}
	case isList && strings.HasSuffix(kind, "List"):
		for i, item := range items {
			if obj, ok := item.(map[string]any); ok {
				items[i] = f.MaskObject(obj)
			}
		}
	}
	return codec.AppendJSON(nil, f.MaskObject(answer))
}

// MaskChange masks an object before and after a change, so that a changed sensitive value has another mask. Both may be
// nil.
func (f *Fields) MaskChange(before, after map[string]any) (was, now map[string]any) {
	now = f.MaskObject(after)
	if before == nil {
		return nil, now
	}
	was, _ = f.maskBefore(f.MaskObject(before), before, after).(map[string]any)
	return was, now
}

// formerly is the mask of a value that has changed since.
const formerly = Omitted + " formerly"

// maskBefore changes masked, the masked copy of before: a sensitive value that differs in after gets another mask, so
// that a comparison shows the change.
func (f *Fields) maskBefore(masked, before, after any) any {
	switch {
	case f == nil || before == nil:
		return masked
	case f.whole:
		if after != nil && !codec.Equal(before, after) {
			return formerly
		}
		return masked
	}
	switch was := before.(type) {
	case map[string]any:
		now, _ := after.(map[string]any)
		out, _ := masked.(map[string]any)
		for name, v := range was {
			if shown, ok := out[name]; ok && !system(name) {
				out[name] = f.Property(name).maskBefore(shown, v, now[name])
			}
		}
	case []any:
		now, _ := after.([]any)
		out, _ := masked.([]any)
		for i, v := range was {
			if i < len(now) && i < len(out) && f.items != nil {
				out[i] = f.items.maskBefore(out[i], v, now[i])
			}
		}
	}
	return masked
}
