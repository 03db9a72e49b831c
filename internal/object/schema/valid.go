package schema

import (
	"reflect"
	"unicode/utf8"
)

// valid reports whether v, decoded JSON, passes every keyword of n and below and has no list-type violation. It is the
// whole validation for nearly every object, so it allocates nothing; explain finds the same failures and describes
// them. It is false, too, if the walk must end.
func (w *walk) valid(n *Node, v any) bool {
	if w.over() {
		return false
	}
	switch v := v.(type) {
	case nil:
		return n.acceptsNull() && len(n.Enum) == 0
	case string:
		if n.accepts&kindString == 0 || n.flags.has(hasText) && !w.validText(n, v) {
			return false
		}
	case map[string]any:
		if n.accepts&kindObject == 0 || !w.validObject(n, v) {
			return false
		}
	case []any:
		if n.accepts&kindArray == 0 || !w.validList(n, v) {
			return false
		}
	case int64:
		if n.accepts&kindInteger == 0 || n.numeric != nil && !n.numeric.validInt(v) {
			return false
		}
	case float64:
		if !n.acceptsFloat(v) || n.numeric != nil && !n.numeric.validFloat(v) {
			return false
		}
	case bool:
		if n.accepts&kindBoolean == 0 {
			return false
		}
	default:
		return false
	}
	if len(n.Enum) > 0 && !inEnum(n.Enum, v) {
		return false
	}
	return !n.flags.has(hasJunctions) || w.validJunctions(n, v)
}

// acceptsNull includes the type null: defaults are checked even in a definition that will be refused for it.
func (n *Node) acceptsNull() bool { return n.types == 0 || n.Nullable || n.Type == "null" }

func (n *Node) acceptsFloat(f float64) bool {
	return n.accepts&kindNumber != 0 || n.accepts&kindInteger != 0 && isInteger(f)
}

// validText checks length, in code points, pattern and format.
func (w *walk) validText(n *Node, v string) bool {
	if m := n.MaxLength; m != nil && int64(len(v)) > *m && int64(utf8.RuneCountInString(v)) > *m {
		return false
	}
	if m := n.MinLength; m != nil && (int64(len(v)) < *m || int64(utf8.RuneCountInString(v)) < *m) {
		return false
	}
	if n.Pattern != "" && (n.pattern == nil || !w.matches(n, v)) {
		return false
	}
	return n.format == nil || n.format.check(v)
}

func (w *walk) validObject(n *Node, m map[string]any) bool {
	if n.MinProps != nil && int64(len(m)) < *n.MinProps || n.MaxProps != nil && int64(len(m)) > *n.MaxProps {
		return false
	}
	for _, name := range n.Required {
		if _, ok := m[name]; !ok {
			return false
		}
	}
	if !n.flags.has(boundsChildren) {
		return true
	}
	if !n.flags.has(hasAdditional) && len(n.fields) <= len(m) {
		for i := range n.fields {
			if v, ok := m[n.fields[i].name]; ok && !w.valid(n.fields[i].node, v) {
				return false
			}
		}
		return true
	}
	for key, v := range m {
		child := n.Properties[key]
		if child == nil {
			if n.flags.has(closed) {
				return false
			}
			if child = n.AdditionalProperties; child == nil {
				continue
			}
		}
		if !w.valid(child, v) {
			return false
		}
	}
	return true
}

func (w *walk) validList(n *Node, list []any) bool {
	if n.MinItems != nil && int64(len(list)) < *n.MinItems || n.MaxItems != nil && int64(len(list)) > *n.MaxItems {
		return false
	}
	if n.Items != nil {
		for _, v := range list {
			if !w.valid(n.Items, v) {
				return false
			}
		}
	}
	return !n.flags.has(listSet|listMap) || w.schema.distinct(n, list)
}

func (w *walk) validJunctions(n *Node, v any) bool {
	for _, sub := range n.AllOf {
		if !w.valid(sub, v) {
			return false
		}
	}
	if len(n.AnyOf) > 0 && !w.validAny(n.AnyOf, v) {
		return false
	}
	if len(n.OneOf) > 0 {
		matches := 0
		for _, sub := range n.OneOf {
			if w.valid(sub, v) {
				matches++
			}
		}
		if matches != 1 {
			return false
		}
	}
	return n.Not == nil || !w.valid(n.Not, v)
}

func (w *walk) validAny(nodes []*Node, v any) bool {
	for _, sub := range nodes {
		if w.valid(sub, v) {
			return true
		}
	}
	return false
}

// inEnum reports whether v equals one of enum after conversion to its Go type. So 1.5 equals 1, and 97 equals "a", as
// always in Kubernetes.
func inEnum(enum []any, v any) bool {
	for _, e := range enum {
		switch e := e.(type) {
		case string:
			switch v := v.(type) {
			case string:
				if v == e {
					return true
				}
			case int64:
				if r := rune(v); int64(r) == v && string(r) == e || int64(r) != v && e == "\uFFFD" {
					return true
				}
			}
		case int64:
			switch v := v.(type) {
			case int64:
				if v == e {
					return true
				}
			case float64:
				if int64(v) == e {
					return true
				}
			}
		case float64:
			switch v := v.(type) {
			case int64:
				if float64(v) == e {
					return true
				}
			case float64:
				if v == e {
					return true
				}
			}
		case bool, map[string]any, []any:
			if reflect.DeepEqual(v, e) {
				return true
			}
		}
	}
	return false
}

// Accepts reports whether v, decoded JSON, is valid at n, a node of the schema. Rules are not evaluated.
func (s *Schema) Accepts(n *Node, v any) bool {
	w := walk{schema: s}
	return w.valid(n, v)
}
