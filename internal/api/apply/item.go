package apply

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// identity distinguishes the items of one list; it is cheaper than key and valid only within the list.
func (d *diff) identity(p position, item any) string {
	if p.node.ListType == "map" && len(p.node.ListMapKeys) == 1 {
		if m, ok := item.(map[string]any); ok {
			if s, ok := m[p.node.ListMapKeys[0]].(string); ok {
				return s
			}
		}
	}
	return d.key(p, item)
}

// key returns the path element of a list's item, as managedFields spells it.
func (d *diff) key(p position, item any) string {
	var buf [96]byte
	if p.node.ListType != "map" {
		return string(d.appendValue(append(buf[:0], "v:"...), item))
	}
	m, ok := item.(map[string]any)
	if !ok {
		d.unsure = true
		return ""
	}
	out := append(buf[:0], "k:{"...)
	for i, name := range sortedKeys(p.node.ListMapKeys) {
		value, ok := m[name]
		if !ok {
			below, declared, _ := p.item().field(name)
			if !declared || below.node.Default == nil {
				d.unsure = true // a key may be omitted, but rarely is
				return ""
			}
			value = below.node.Default
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(d.appendString(out, name), ':')
		out = d.appendValue(out, value)
	}
	return string(append(out, '}'))
}

// sortedKeys returns names in order, without a copy where they are.
func sortedKeys(names []string) []string {
	switch {
	case len(names) < 2 || len(names) == 2 && names[0] < names[1]:
		return names
	case len(names) == 2:
		return []string{names[1], names[0]}
	}
	return slices.Sorted(slices.Values(names))
}

func (d *diff) appendValue(out []byte, value any) []byte {
	switch value := value.(type) {
	case string:
		return d.appendString(out, value)
	case int64:
		return strconv.AppendInt(out, value, 10)
	case bool:
		return strconv.AppendBool(out, value)
	}
	d.unsure = true // null, a fraction, or not a scalar
	return out
}

// appendString appends s in JSON, with <, > and & escaped.
func (d *diff) appendString(out []byte, s string) []byte {
	out = append(out, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c == '<' || c == '>' || c == '&':
			const hex = "0123456789abcdef"
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < ' ' || c == 0xe2 || c == utf8.RuneSelf-1:
			d.unsure = true // encoders disagree about control characters and line separators
			return out
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
