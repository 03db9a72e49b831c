package watchcache

import (
	"fmt"
	"strconv"
	"strings"
)

// fieldLimit bounds the fields that one entry remembers.
const fieldLimit = 8

// fieldValue is a remembered field of an entry, in a list.
type fieldValue struct {
	path  string
	value string
	found bool
	next  *fieldValue
	left  int
}

// Field returns the value at a simple JSON path (".spec.bucket", "metadata.name"; a dot inside a name is written `\.`),
// as Kubernetes prints it for field selectors: strings as they are, numbers and booleans as Go prints them. false if
// there is nothing there or null. The result is remembered.
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
		fresh.value = strings.Clone(fresh.value) // it would hold on to the bytes
	}
	if head != nil {
		fresh.left = head.left - 1
	}
	if fresh.left < 0 {
		fresh.next, fresh.left = nil, fieldLimit-1
	}
	e.fields.CompareAndSwap(head, fresh) // if another was faster, the next caller looks again
	return fresh.value, fresh.found
}

// FieldOf is Field for the bytes of an object, an Entry's or what was served of one. Nothing is remembered.
func FieldOf(data []byte, path string) (string, bool) {
	return lookup(data, strings.TrimPrefix(path, "."))
}

// PartOf returns the JSON of the field that is reached by names in an object, the bytes of an Entry or such a part of
// them; nil if there is none. It is a part of data, and nothing is decoded.
func PartOf(data []byte, names ...string) []byte {
	if len(data) == 0 { // of an unreadable entry, or a part that is not there
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

// lookup finds path in data, which is JSON without whitespace and with sorted keys.
func lookup(data []byte, path string) (string, bool) {
	if len(data) == 0 { // of an unreadable entry
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

// member returns where the value of name begins in the object at i, -1 if there is none.
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
