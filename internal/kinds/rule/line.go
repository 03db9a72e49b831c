package rule

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Value is a value to check.
type Value struct {
	New  any
	Old  any           // the value before an update; nil inside of lists
	In   object.Object // the object that has the field
	Path *field.Path
}

// Object returns the value as an object, nil if it is missing.
func (p Value) Object() object.Object {
	o, _ := p.New.(object.Object)
	return o
}

// Block runs the lines of a type on an object of it. There need not be any.
func (val *Validation) Block(name string, obj, old object.Object, path *field.Path) {
	lines := val.blocks[name]
	for i := 0; i < len(lines); i++ {
		c := lines[i]
		if c.op == "union" {
			n := 1
			for i+n < len(lines) && lines[i+n].op == "|" {
				n++
			}
			val.union(strings.Join(c.args, " "), lines[i+1:i+n], obj, path)
			i += n - 1
			continue
		}
		val.walk(c, c.path, Value{New: obj, Old: old, Path: path})
	}
}

// walk follows the path to the values that the line is about, as long as the request has time.
func (val *Validation) walk(c *line, steps []step, p Value) {
	if val.over() {
		return
	}
	if len(steps) == 0 {
		val.check(c, p)
		return
	}
	s, obj := steps[0], p.Object()
	old, _ := p.Old.(object.Object)
	v, path := obj[s.name], childPath(p.Path, s.name)
	switch {
	case s.list:
		list, _ := v.([]any)
		for i, e := range list {
			val.walk(c, steps[1:], Value{New: e, In: obj, Path: path.Index(i)})
		}
	case s.dict:
		m, _ := v.(object.Object)
		for _, key := range object.Keys(m) {
			val.walk(c, steps[1:], Value{New: m[key], In: obj, Path: path.Key(key)})
		}
	default:
		val.walk(c, steps[1:], Value{v, old[s.name], obj, path})
	}
}

// childPath returns the path of a field; path is nil for the object itself.
func childPath(path *field.Path, name string) *field.Path {
	if path == nil {
		return field.NewPath(name)
	}
	return path.Child(name)
}

func (val *Validation) check(c *line, p Value) {
	switch c.op {
	case ":":
		if obj := p.Object(); obj != nil {
			old, _ := p.Old.(object.Object)
			val.Block(c.args[0], obj, old, p.Path)
		}
	case "!":
		c.call(val, p)
	case "required":
		if IsEmpty(p.New) {
			val.Required(p.Path, c.text)
		}
	case "set":
		if p.New == nil {
			val.Required(p.Path, c.text)
		}
	case "unset":
		if !IsEmpty(p.New) || c.mark == '?' && p.New != nil {
			val.Forbidden(p.Path, c.text)
		}
	case "same":
		if val.Old != nil && !Equivalent(p.New, p.Old) {
			val.Invalid(p.Path, p.New, Or(c.text, "field is immutable"))
		}
	case "sealed":
		if val.Old != nil && !Equivalent(p.New, p.Old) {
			val.Sealed(p.Path)
		}
	case "one":
		val.oneOf(c, p)
	case "format":
		s, ok := p.New.(string)
		if s != "" || c.mark == '!' || c.mark == '?' && ok {
			val.Invalids(p.Path, s, c.format(s))
		}
	default:
		val.number(c, p)
	}
}

func (val *Validation) oneOf(c *line, p Value) {
	s, ok := p.New.(string)
	if s == "" && (c.mark == 0 || c.mark == '?' && !ok) {
		return
	}
	for _, a := range c.args {
		if s == a {
			return
		}
	}
	val.Unsupported(p.Path, s, c.args...)
}

func (val *Validation) number(c *line, p Value) {
	if c.op == "length" {
		if s, _ := p.New.(string); int64(len(s)) > c.low {
			val.Add(field.TooLong(p.Path, "", int(c.low)))
		}
		return
	}
	n, ok := p.New.(int64)
	if !ok {
		if p.New != nil || c.mark != '!' {
			return
		}
	}
	switch {
	case c.op == "port" && (n != 0 || c.mark == '!'):
		val.Invalids(p.Path, n, validation.IsValidPortNum(int(n)))
	case c.op == "nonnegative" && n < 0:
		val.Invalid(p.Path, n, "must be greater than or equal to 0")
	case c.op == "min" && n < c.low:
		val.Invalid(p.Path, n, c.text)
	case c.op == "range" && (n < c.low || n > c.high):
		val.Invalid(p.Path, n, Or(c.text, validation.InclusiveRangeError(int(c.low), int(c.high))))
	}
}

// union requires exactly one of the fields. Some have another name in errors about their content, and a third in the
// error about additional fields.
func (val *Validation) union(noun string, lines []*line, obj object.Object, path *field.Path) {
	found := false
	for _, c := range lines {
		name := c.path[0].name
		v, ok := obj[name].(object.Object)
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
			val.Forbidden(path.Child(refused), "may not specify more than 1 "+noun)
			continue
		}
		found = true
		val.Block(c.args[0], v, nil, path.Child(inside))
	}
	if !found {
		val.Required(path, "must specify a "+noun)
	}
}

// IsEmpty reports whether v is a value that omitempty omits: nil, "", 0, false, an empty list or map.
func IsEmpty(v any) bool {
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
	case object.Object:
		return len(v) == 0
	}
	return false
}

// Equivalent reports whether two values mean the same: an empty list or map is as good as none.
func Equivalent(a, b any) bool {
	switch a := a.(type) {
	case object.Object:
		b, ok := b.(object.Object)
		if !ok && len(a) > 0 {
			return false
		}
		for key, v := range a {
			if !Equivalent(v, b[key]) {
				return false
			}
		}
		for key, v := range b {
			if _, ok := a[key]; !ok && !Equivalent(nil, v) {
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
			if !Equivalent(a[i], b[i]) {
				return false
			}
		}
		return true
	case nil:
		switch b := b.(type) {
		case object.Object:
			return len(b) == 0
		case []any:
			return len(b) == 0
		}
		return b == nil
	}
	return reflect.DeepEqual(a, b)
}
