package watchcache

import (
	"fmt"
	"strconv"
	"strings"
)

// fieldLimit bounds the cached fields of one entry.
const fieldLimit = 8

// fieldValue is a cached field of an entry, in a linked list.
type fieldValue struct {
	path  string
	value string
	found bool
	next  *fieldValue
	left  int
}

// Field returns the value at a simple JSON path (".spec.bucket", "metadata.name"; `\.` is a dot inside a name) in the
// format of Kubernetes' field selectors: strings unquoted, numbers and booleans as Go prints them. found is false if
// the field is missing or null. The result is cached.
func (e *Entry) Field(path string) (string, bool) {
	head := e.fields.Load()
	for f := head; f != nil; f = f.next {
		if f.path == path {
			return f.value, f.found
		}
	}
	fresh := &fieldValue{path: path, next: head, left: fieldLimit - 1}
	fresh.value, fresh.found = lookup(e.Peek(), strings.TrimPrefix(path, "."))
	if e.compressed != nil {
		fresh.value = strings.Clone(fresh.value) // otherwise it would retain the bytes
	}
	if head != nil {
		fresh.left = head.left - 1
	}
	if fresh.left < 0 {
		fresh.next, fresh.left = nil, fieldLimit-1
	}
	e.fields.CompareAndSwap(head, fresh) // if another caller was faster, the next one searches again
	return fresh.value, fresh.found
}

// FieldOf is Field for an object's bytes, from an Entry or a response. It caches nothing.
func FieldOf(data []byte, path string) (string, bool) {
	return lookup(data, strings.TrimPrefix(path, "."))
}

// PartOf returns the JSON of a nested field in an object: the bytes of an Entry, or a part of them. It is nil if the
// field is missing. The result is a part of data; nothing is decoded.
func PartOf(data []byte, names ...string) []byte {
	if len(data) == 0 { // an unreadable entry, or a missing part
		return nil
	}
	i := 0
	for _, name := range names {
		if i = member(data, i, name); i < 0 {
			return nil
		}
	}
	return data[i:skip(data, i)]
}

// lookup finds path in data, JSON without whitespace and with sorted keys.
func lookup(data []byte, path string) (string, bool) {
	if len(data) == 0 { // an unreadable entry
		return "", false
	}
	i := 0
	for more := path != ""; more; {
		var name string
		name, path, more = cutName(path)
		if i = member(data, i, name); i < 0 {
			return "", false
		}
	}
	raw := data[i:skip(data, i)]
	switch raw[0] {
	case 'n':
		return "", false
	case '"':
		return text(raw[1 : len(raw)-1]), true
	case 't', 'f', '{', '[':
		return string(raw), true
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return strconv.FormatInt(n, 10), true
	}
	f, _ := strconv.ParseFloat(string(raw), 64)
	return fmt.Sprint(f), true
}

// cutName splits the first name off a path.
func cutName(path string) (name, rest string, more bool) {
	escaped := false
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == '\\' && i+1 < len(path):
			escaped = true
			i++
		case path[i] == '.':
			name, rest, more = path[:i], path[i+1:], true
			if escaped {
				name = strings.ReplaceAll(name, `\.`, `.`)
			}
			return name, rest, more
		}
	}
	if escaped {
		path = strings.ReplaceAll(path, `\.`, `.`)
	}
	return path, "", false
}

// member returns the position of the value of name in the object at i, -1 if it is missing.
func member(data []byte, i int, name string) int {
	if data[i] != '{' || data[i+1] == '}' {
		return -1
	}
	for i++; ; i++ {
		end := skip(data, i)
		key := data[i+1 : end-1]
		at := end + 1
		if string(key) == name || len(key) > len(name) && unquote(key) == name {
			return at
		}
		if i = skip(data, at); data[i] == '}' {
			return -1
		}
	}
}

// skip returns the end of the value at i of valid JSON.
func skip(data []byte, i int) int {
	switch data[i] {
	case '"':
		return skipText(data, i)
	case '{', '[':
		for depth := 0; ; i++ {
			switch data[i] {
			case '"':
				i = skipText(data, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(data) {
		switch data[i] {
		case ',', '}', ']':
			return i
		}
		i++
	}
	return i
}

func skipText(data []byte, i int) int {
	for i++; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i + 1
}
