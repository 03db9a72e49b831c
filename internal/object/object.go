// Package object reads and changes decoded JSON objects.
//
// It is the lowest layer for objects: the schemas of custom kinds, the strategies of built-in kinds, admission, the
// verbs and the controllers all work on the same maps. Readers never fail: a missing value, or one of another type,
// reads as the zero value, since objects are validated before they are read.
package object

import (
	"maps"
	"slices"
)

// Object is a decoded JSON object: its values are Object, []any, string, bool, int64, float64 and nil.
type Object = map[string]any

// Map returns the object at path, nil if there is none. The empty path is obj itself.
func Map(obj Object, path ...string) Object {
	for _, name := range path {
		obj, _ = obj[name].(Object)
	}
	return obj
}

// value returns the value at a path of at least one name, nil if there is none.
func value(obj Object, path []string) any {
	last := len(path) - 1
	return Map(obj, path[:last]...)[path[last]]
}

// String returns the string at a path of at least one name, "" if there is none.
func String(obj Object, path ...string) string {
	s, _ := value(obj, path).(string)
	return s
}

// Int returns the integer at a path of at least one name, and whether there is one.
func Int(obj Object, path ...string) (n int64, ok bool) {
	n, ok = value(obj, path).(int64)
	return n, ok
}

// True reports whether the value at a path of at least one name is true.
func True(obj Object, path ...string) bool {
	return value(obj, path) == true
}

// List returns the list at a path of at least one name, nil if there is none.
func List(obj Object, path ...string) []any {
	list, _ := value(obj, path).([]any)
	return list
}

// Strings returns the strings of the list at a path of at least one name, nil if it is not a list of strings.
func Strings(obj Object, path ...string) []string {
	list := List(obj, path...)
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, v := range list {
		s, ok := v.(string)
		if !ok {
			return nil
		}
		out[i] = s
	}
	return out
}

// StringMap returns the strings of the object at path, nil if there is no object.
func StringMap(obj Object, path ...string) map[string]string {
	m := Map(obj, path...)
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for key, v := range m {
		out[key], _ = v.(string)
	}
	return out
}

// Objects returns the elements of list that are objects. A value that is not a list has none.
func Objects(list any) []Object {
	items, _ := list.([]any)
	out := make([]Object, 0, len(items))
	for _, item := range items {
		if obj, ok := item.(Object); ok {
			out = append(out, obj)
		}
	}
	return out
}

// Keys returns the names of an object's fields in order.
func Keys(obj Object) []string { return slices.Sorted(maps.Keys(obj)) }

// Child returns the object in the field name of obj, and creates it if there is none.
func Child(obj Object, name string) Object {
	child, ok := obj[name].(Object)
	if !ok || child == nil {
		child = Object{}
		obj[name] = child
	}
	return child
}

// Meta returns the metadata of obj, and creates it if there is none.
func Meta(obj Object) Object { return Child(obj, "metadata") }

// SetOrDelete sets the field name to v if present is true, and deletes the field otherwise.
func SetOrDelete(obj Object, name string, v any, present bool) {
	if present {
		obj[name] = v
	} else {
		delete(obj, name)
	}
}

// Finalizers returns metadata.finalizers, nil for a nil object or one without.
func Finalizers(obj Object) []string { return Strings(obj, "metadata", "finalizers") }

// SetFinalizers sets metadata.finalizers, or deletes the field if the list is empty.
func SetFinalizers(obj Object, list []string) {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	SetOrDelete(Meta(obj), "finalizers", out, len(out) > 0)
}
