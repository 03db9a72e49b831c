package check

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// place is a value that a check looks at.
type place struct {
	value any
	old   any    // what was there before an update; nil inside of lists
	in    object // the object that has the field
	path  *field.Path
}

// object returns the value as an object, nil if it is not there.
func (p place) object() object {
	o, _ := p.value.(object)
	return o
}

// block runs the lines of a type on an object of it. There need not be any.
func (j *judgement) block(name string, obj, old object, path *field.Path) {
	lines := j.blocks[name]
	for i := 0; i < len(lines); i++ {
		c := lines[i]
		if c.op == "union" {
			n := 1
			for i+n < len(lines) && lines[i+n].op == "|" {
				n++
			}
			j.union(strings.Join(c.args, " "), lines[i+1:i+n], obj, path)
			i += n - 1
			continue
		}
		j.walk(c, c.path, place{value: obj, old: old, path: path})
	}
}

// walk follows the path to the values that the line is about.
func (j *judgement) walk(c *line, steps []step, p place) {
	if len(steps) == 0 {
		j.check(c, p)
		return
	}
	s, obj := steps[0], p.object()
	old, _ := p.old.(object)
	v, path := obj[s.name], child(p.path, s.name)
	switch {
	case s.list:
		list, _ := v.([]any)
		for i, e := range list {
			j.walk(c, steps[1:], place{value: e, in: obj, path: path.Index(i)})
		}
	case s.dict:
		m, _ := v.(object)
		for _, key := range keys(m) {
			j.walk(c, steps[1:], place{value: m[key], in: obj, path: path.Key(key)})
		}
	default:
		j.walk(c, steps[1:], place{v, old[s.name], obj, path})
	}
}

// child returns the path of a field; path is nil for the object itself.
func child(path *field.Path, name string) *field.Path {
	if path == nil {
		return field.NewPath(name)
	}
	return path.Child(name)
}

func (j *judgement) check(c *line, p place) {
	switch c.op {
	case ":":
		if obj := p.object(); obj != nil {
			old, _ := p.old.(object)
			j.block(c.args[0], obj, old, p.path)
		}
	case "!":
		c.call(j, p)
	case "required":
		if empty(p.value) {
			j.required(p.path, c.text)
		}
	case "set":
		if p.value == nil {
			j.required(p.path, c.text)
		}
	case "unset":
		if !empty(p.value) || c.mark == '?' && p.value != nil {
			j.forbidden(p.path, c.text)
		}
	case "same":
		if j.old != nil && !same(p.value, p.old) {
			j.invalid(p.path, p.value, or(c.text, "field is immutable"))
		}
	case "one":
		j.oneOf(c, p)
	case "format":
		s, ok := p.value.(string)
		if s != "" || c.mark == '!' || c.mark == '?' && ok {
			j.invalids(p.path, s, c.format(s))
		}
	default:
		j.number(c, p)
	}
}

func (j *judgement) oneOf(c *line, p place) {
	s, ok := p.value.(string)
	if s == "" && (c.mark == 0 || c.mark == '?' && !ok) {
		return
	}
	for _, a := range c.args {
		if s == a {
			return
		}
	}
	j.unsupported(p.path, s, c.args...)
}

func (j *judgement) number(c *line, p place) {
	if c.op == "length" {
		if s, _ := p.value.(string); int64(len(s)) > c.low {
			j.add(field.TooLong(p.path, "", int(c.low)))
		}
		return
	}
	n, ok := p.value.(int64)
	if !ok {
		if p.value != nil || c.mark != '!' {
			return
		}
	}
	switch {
	case c.op == "port" && (n != 0 || c.mark == '!'):
		j.invalids(p.path, n, validation.IsValidPortNum(int(n)))
	case c.op == "nonnegative" && n < 0:
		j.invalid(p.path, n, "must be greater than or equal to 0")
	case c.op == "min" && n < c.low:
		j.invalid(p.path, n, c.text)
	case c.op == "range" && (n < c.low || n > c.high):
		j.invalid(p.path, n, or(c.text, validation.InclusiveRangeError(int(c.low), int(c.high))))
	}
}

// union wants exactly one of the fields. Some have another name in errors about what is in them, and a third in the
// error that says that there are others.
func (j *judgement) union(what string, lines []*line, obj object, path *field.Path) {
	found := false
	for _, c := range lines {
		name := c.path[0].name
		v, ok := obj[name].(object)
		if !ok {
			continue
		}
		inside, refused := name, name
		if len(c.args) > 1 {
			inside = c.args[1]
		}
		if len(c.args) > 2 {
			refused = c.args[2]
		}
		if found {
			j.forbidden(path.Child(refused), "may not specify more than 1 "+what)
			continue
		}
		found = true
		j.block(c.args[0], v, nil, path.Child(inside))
	}
	if !found {
		j.required(path, "must specify a "+what)
	}
}

// empty tells whether v is what Go leaves out: nothing, "", 0, false, an empty list or map.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case int64:
		return v == 0
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case object:
		return len(v) == 0
	}
	return false
}

// same tells whether two values mean the same: an empty list or map is as good as none.
func same(a, b any) bool {
	switch a := a.(type) {
	case object:
		b, ok := b.(object)
		if !ok && len(a) > 0 {
			return false
		}
		for key, v := range a {
			if !same(v, b[key]) {
				return false
			}
		}
		for key, v := range b {
			if _, ok := a[key]; !ok && !same(nil, v) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok && len(a) > 0 || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case nil:
		switch b := b.(type) {
		case object:
			return len(b) == 0
		case []any:
			return len(b) == 0
		}
		return b == nil
	}
	return reflect.DeepEqual(a, b)
}
