package script

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
)

func documents(text string) (out []any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	for {
		var v any
		switch err := d.Decode(&v); err {
		case nil:
			out = append(out, v)
		case io.EOF:
			return out, nil
		default:
			return nil, err
		}
	}
}

// compare returns the location of a difference between got and want, "" if there is none.
func (r *runner) compare(path string, got, want any) string {
	switch want := want.(type) {
	case string:
		switch {
		case want == "$any":
			if got == nil {
				return path + " is missing or null"
			}
			return ""
		case variable.FindString(want) == want && r.vars[want] == "":
			r.vars[want] = fmt.Sprint(got)
			return ""
		case got != r.expand(want):
			return fmt.Sprintf("%s is %q, want %q", path, got, r.expand(want))
		}
		return ""
	case map[string]any:
		return r.compareObjects(path, got, want)
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Sprintf("%s is %v, want %v", path, got, want)
		}
		for i := range want {
			if diff := r.compare(fmt.Sprintf("%s[%d]", path, i), list[i], want[i]); diff != "" {
				return diff
			}
		}
		return ""
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("%s is %v, want %v", path, got, want)
	}
	return ""
}

func (r *runner) compareObjects(path string, got any, want map[string]any) string {
	obj, ok := got.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s is %v, want an object", path, got)
	}
	_, open := want["..."]
	for name := range obj {
		if _, expected := want[name]; !expected && !open {
			return fmt.Sprintf("%s.%s is there", path, name)
		}
	}
	for name, v := range want {
		if name == "..." {
			continue
		}
		if _, there := obj[name]; !there {
			return fmt.Sprintf("%s.%s is missing", path, name)
		}
		if diff := r.compare(path+"."+name, obj[name], v); diff != "" {
			return diff
		}
	}
	return ""
}
