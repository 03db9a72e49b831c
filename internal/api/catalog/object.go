package catalog

// At returns the object that a path leads to, nil if there is none.
func At(obj Object, path ...string) Object {
	for _, name := range path {
		obj, _ = obj[name].(Object)
	}
	return obj
}

// Text returns the string at a path of at least one name, "" if there is none.
func Text(obj Object, path ...string) string {
	last := len(path) - 1
	s, _ := At(obj, path[:last]...)[path[last]].(string)
	return s
}

// Objects returns the elements of a list that are objects.
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
