package growth

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
)

// empty returns the shortest value of the same type.
func empty(v any) any {
	switch v.(type) {
	case string:
		return ""
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	}
	return v
}

// vary returns a copy of an element. With distinct, its names, keys and numbers differ for each i.
func vary(v any, i int, distinct bool, field string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			out[key] = vary(e, i, distinct, key)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for k, e := range v {
			out[k] = vary(e, i, distinct, field)
		}
		return out
	case string:
		if distinct && !fixed(v, field) {
			return different(v, i)
		}
	case int64:
		if distinct && strings.HasSuffix(strings.ToLower(field), "port") {
			return 1 + (v+int64(i))%65535
		}
	}
	return v
}

// fixed reports whether a field takes only a few texts. Such texts begin with a capital letter; names may, too.
func fixed(text, field string) bool {
	switch field {
	case "name", "key", "path", "mountPath", "devicePath", "ip", "uid", "topologyKey", "value", "containerName":
		return false
	case "type":
		return !strings.Contains(text, "/") && text != strings.ToLower(text)
	}
	return text == "" || text[0] < 'a' || text[0] > 'z'
}

// different returns a text of the same form.
func different(text string, i int) string {
	switch {
	case strings.Count(text, ".") == 3 && strings.Trim(text, "0123456789.") == "":
		return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	case strings.Contains(text, "/") && !strings.HasPrefix(text, "/"):
		return fmt.Sprint(text, "-", i)
	}
	return fmt.Sprint(text, i)
}

// filled returns a value of a Go type with all its scalars.
func filled(t reflect.Type, depth int) any {
	switch t.Kind() {
	case reflect.Pointer:
		return filled(t.Elem(), depth)
	case reflect.String:
		return "a"
	case reflect.Bool:
		return true
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return int64(1)
	case reflect.Struct:
		return filledStruct(t, depth)
	}
	return nil
}

func filledStruct(t reflect.Type, depth int) any {
	switch t.Name() {
	case "Quantity":
		return "1"
	case "Time":
		return "2026-01-02T03:04:05Z"
	case "MicroTime":
		return "2026-01-02T03:04:05.000000Z"
	case "IntOrString":
		return int64(1)
	case "Duration":
		return "1s"
	case "JSON":
		return "a"
	}
	out := map[string]any{}
	if depth > 1 || opaque(t) {
		return out
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		optional := f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct && !opaque(f.Type.Elem())
		if !f.IsExported() || name == "-" || optional { // an optional struct may be one of a union
			continue
		}
		v := filled(f.Type, depth+1)
		switch inner, isMap := v.(map[string]any); {
		case v == nil: // a list or map
		case name == "" && strings.Contains(options, "inline") && isMap:
			maps.Copy(out, inner)
		default:
			out[name] = v
		}
	}
	return out
}
