package definition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxMismatches bounds the values of wrong types that lint reports for one definition.
const maxMismatches = 100

// mismatch matches the decoder's error for a value of the wrong type: its JSON type, its path without indexes and keys,
// and the Go type of the field.
var mismatch = regexp.MustCompile(`cannot unmarshal (\w+) into Go struct field \w+\.(\S+) of type (\S+)`)

// decode decodes the definition and reports all values of wrong types: the decoder stops at the first one, so decode
// removes it and decodes again. It returns the unknown fields, and whether a value was of a wrong type.
func (j *judgment) decode(decode func(obj map[string]any) ([]string, error)) (unknown []string, mismatched bool) {
	for len(j.Errors) < maxMismatches {
		unknown, err := decode(j.Object)
		if err == nil {
			return unknown, mismatched
		}
		mismatched = true
		m := mismatch.FindStringSubmatch(err.Error())
		if m == nil {
			j.refuse("", err.Error())
			break
		}
		w := wrong{kind: m[1]}
		w.find(j.Object, strings.Split(m[2], "."), "")
		if len(w.paths) == 0 {
			j.refuse(m[2], fmt.Sprintf("is %s, and must be %s", article(m[1]), wanted(m[3])))
			break
		}
		slices.Sort(w.paths)
		for _, path := range w.paths {
			j.refuse(path, fmt.Sprintf("is %s, and must be %s", article(m[1]), wanted(m[3])))
		}
	}
	return nil, mismatched
}

// wrong finds the values of a JSON type.
type wrong struct {
	kind  string
	paths []string
}

// find removes the values at a path without indexes and keys, and collects their full paths. It reports whether v
// itself is such a value.
func (w *wrong) find(v any, steps []string, at string) bool {
	if len(steps) == 0 {
		if kindOf(v) == w.kind {
			w.paths = append(w.paths, at)
			return true
		}
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if w.find(item, steps, fmt.Sprintf("%s[%d]", at, i)) {
				v[i] = nil
			}
		}
	case map[string]any:
		if len(steps) == 0 {
			return false
		}
		if below, ok := v[steps[0]]; ok {
			if w.find(below, steps[1:], strings.TrimPrefix(at+"."+steps[0], ".")) {
				v[steps[0]] = nil
			}
			return false
		}
		for key, below := range v { // a map, such as properties
			if w.find(below, steps, fmt.Sprintf("%s[%s]", at, key)) {
				v[key] = nil
			}
		}
	}
	return false
}

// kindOf returns the decoder's name of a JSON type.
func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "bool"
	case int64, float64:
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "null"
}

// wanted describes a Go type in words of JSON.
func wanted(goType string) string {
	name := goType[strings.LastIndex(goType, ".")+1:]
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "an array"
	case strings.HasPrefix(goType, "map["):
		return "an object"
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "float"):
		return "a number"
	case name == "string", name == "bool":
		return article(name)
	}
	return "a value of type " + name
}

// article returns a type with its article.
func article(name string) string {
	if strings.ContainsAny(name[:1], "aeiou") {
		return "an " + name
	}
	return "a " + name
}
