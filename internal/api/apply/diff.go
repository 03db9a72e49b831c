package apply

import (
	"strings"
)

// diff compares two objects under a schema: fields added, removed and changed. It gives up by setting unsure on any
// value that does not clearly match the schema; then the long way decides.
type diff struct {
	unsure bool
	// distinct makes it also give up on two items with one identity in an atomic value.
	distinct bool
	// owned is the shared node for atomic fields: most nodes are, and separate maps would be most of a tree's cost.
	owned fields
}

// leaf is a node without children.
func (d *diff) leaf() fields {
	if d.owned == nil {
		d.owned = fields{}
	}
	return d.owned
}

// change is the result of diff at a node. nil trees are empty.
type change struct {
	added, modified, removed fields
}

// objects compares old with new at p, a map owned field by field.
func (d *diff) objects(p position, old, new map[string]any) (c change) {
	common := 0
	for name, value := range new {
		below, _, ok := p.field(name)
		if !ok {
			d.unsure = true
			return c
		}
		if before, ok := old[name]; ok {
			common++
			c.merge("f:", name, d.values(below, before, value))
		} else {
			put(&c.added, "f:"+name, d.whole(below, value))
		}
		if d.unsure {
			return c
		}
	}
	if common == len(old) {
		return c
	}
	for name, value := range old {
		if _, ok := new[name]; ok {
			continue
		}
		below, _, ok := p.field(name)
		if !ok {
			d.unsure = true
			return c
		}
		put(&c.removed, "f:"+name, d.whole(below, value))
	}
	return c
}

// merge adds the changes below a field.
func (c *change) merge(kind, name string, below change) {
	if below.added == nil && below.modified == nil && below.removed == nil {
		return
	}
	key := kind + name
	if below.added != nil {
		put(&c.added, key, below.added)
	}
	if below.modified != nil {
		put(&c.modified, key, below.modified)
	}
	if below.removed != nil {
		put(&c.removed, key, below.removed)
	}
}

func put(f *fields, key string, value fields) {
	if *f == nil {
		*f = fields{}
	}
	(*f)[key] = value
}

// values compares two present values. null has the type of the other value, because built-in kinds write unset lists
// and times as null.
func (d *diff) values(p position, old, new any) (c change) {
	if p.node.Type == "" && (old == nil) != (new == nil) {
		d.unsure = true // structured-merge-diff compares such values once for each possible type
		return c
	}
	_, list, object := p.shapes()
	there := new
	if there == nil {
		there = old
	}
	switch there.(type) {
	case nil:
		return c
	case map[string]any:
		was, now, ok := both[map[string]any](old, new)
		switch {
		case !ok || !object:
			d.unsure = true
		case !p.atomicMap() && len(was)+len(now) > 0:
			return d.objects(p, was, now)
		default:
			return d.scalar(p, old, new)
		}
	case []any:
		was, now, ok := both[[]any](old, new)
		switch {
		case !ok || !list:
			d.unsure = true
		case !p.atomicList() && len(was)+len(now) > 0:
			return d.lists(p, was, now)
		default:
			return d.scalar(p, old, new)
		}
	default:
		if isScalar(there) && (old == nil || isScalar(old)) {
			return d.scalar(p, old, new)
		}
		d.unsure = true
	}
	return c
}

// both converts two values to one type; ok is false if one is neither of that type nor null.
func both[T any](old, new any) (was, now T, ok bool) {
	was, wasOne := old.(T)
	now, isOne := new.(T)
	return was, now, (wasOne || old == nil) && (isOne || new == nil)
}

// scalar compares two atomic values.
func (d *diff) scalar(p position, old, new any) (c change) {
	d.check(p, new)
	if !equal(old, new) {
		d.check(p, old)
		c.modified = d.leaf()
	}
	return c
}

// lists compares lists of items with identities.
func (d *diff) lists(p position, old, new []any) (c change) {
	before := make(map[string]any, len(old))
	for _, item := range old {
		id := d.identity(p, item)
		if _, twice := before[id]; twice {
			d.unsure = true
		}
		before[id] = item
	}
	seen := make(map[string]struct{}, len(new))
	below := p.item()
	common := 0
	for _, item := range new {
		id := d.identity(p, item)
		if _, twice := seen[id]; twice {
			d.unsure = true
		}
		if d.unsure {
			return c
		}
		seen[id] = struct{}{}
		if was, ok := before[id]; ok {
			common++
			found := d.values(below, was, item)
			if found.added != nil || found.modified != nil || found.removed != nil {
				c.merge("", d.key(p, item), found)
			}
		} else {
			put(&c.added, d.key(p, item), d.whole(below, item))
		}
	}
	if common == len(old) {
		return c
	}
	for _, item := range old {
		if _, ok := seen[d.identity(p, item)]; !ok {
			put(&c.removed, d.key(p, item), d.whole(below, item))
		}
	}
	return c
}

// whole returns the fields of a value that exists on one side only.
func (d *diff) whole(p position, value any) fields {
	switch value := value.(type) {
	case map[string]any:
		if _, _, object := p.shapes(); !object {
			d.unsure = true
			return nil
		}
		if p.atomicMap() || len(value) == 0 {
			d.check(p, value)
			return d.leaf()
		}
		return d.wholeMap(p, value)
	case []any:
		if _, list, _ := p.shapes(); !list {
			d.unsure = true
			return nil
		}
		if p.atomicList() || len(value) == 0 {
			d.check(p, value)
			return d.leaf()
		}
		f := make(fields, len(value)+1)
		f[own] = d.leaf()
		below := p.item()
		var last any
		var tree fields
		for _, item := range value {
			if flatAlike(last, item) {
				d.check(below, item)
			} else {
				tree = d.whole(below, item)
			}
			last = item
			f[d.key(p, item)] = tree
		}
		if len(f) != len(value)+1 {
			d.unsure = true // two items with one identity
		}
		return f
	case nil:
		return d.leaf()
	default:
		d.check(p, value)
		return d.leaf()
	}
}

// flatAlike reports whether a and b are maps of scalars with the same keys, like many items of one list. They have the
// same fields, so they can share one tree.
func flatAlike(a, b any) bool {
	first, ok := a.(map[string]any)
	second, both := b.(map[string]any)
	if !ok || !both || len(first) != len(second) {
		return false
	}
	for name, value := range second {
		before, ok := first[name]
		if !ok || !isScalar(value) || !isScalar(before) {
			return false
		}
	}
	return len(first) > 0
}

// wholeMap is whole for a map owned field by field. Its keys are slices of one string, which costs one allocation for
// all.
func (d *diff) wholeMap(p position, value map[string]any) fields {
	size := 0
	for name := range value {
		size += len("f:") + len(name)
	}
	var keys strings.Builder
	keys.Grow(size)
	f := make(fields, len(value)+1)
	f[own] = d.leaf()
	for name, v := range value {
		below, _, ok := p.field(name)
		if !ok {
			d.unsure = true
			return nil
		}
		start := keys.Len()
		keys.WriteString("f:")
		keys.WriteString(name)
		f[keys.String()[start:]] = d.whole(below, v)
	}
	return f
}

// check becomes unsure if value is not of the types at p, all the way down.
func (d *diff) check(p position, value any) {
	scalar, list, object := p.shapes()
	switch value := value.(type) {
	case nil:
	case map[string]any:
		if !object {
			d.unsure = true
			return
		}
		if p.node == untyped || p.node == deduced {
			return
		}
		for name, v := range value {
			below, _, ok := p.field(name)
			if !ok {
				d.unsure = true
				return
			}
			d.check(below, v)
		}
	case []any:
		if !list {
			d.unsure = true
			return
		}
		if p.node == untyped || p.node == deduced {
			return
		}
		below := p.item()
		var seen map[string]struct{}
		for _, item := range value {
			d.check(below, item)
			if p.atomicList() {
				continue
			}
			id := d.identity(p, item)
			if _, twice := seen[id]; twice && d.distinct {
				d.unsure = true
				return
			}
			if seen == nil {
				seen = make(map[string]struct{}, len(value))
			}
			seen[id] = struct{}{}
		}
	default:
		if !scalar || !scalarFits(p, value) {
			d.unsure = true
		}
	}
}

func scalarFits(p position, value any) bool {
	switch p.node.Type {
	case "integer", "number":
		switch value.(type) {
		case int64, float64:
			return true
		}
		return false
	case "boolean":
		_, ok := value.(bool)
		return ok
	case "string":
		if _, ok := value.(string); ok {
			return true
		}
		return scalarType(p) == "untyped" && isScalar(value)
	}
	return isScalar(value)
}

func isScalar(value any) bool {
	switch value.(type) {
	case string, int64, float64, bool:
		return true
	}
	return false
}

// equal compares decoded JSON; numbers by value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		if len(a) > 0 && &a[0] == &b[0] {
			return true // the same list, for instance untouched by a patch
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case int64:
		if f, ok := b.(float64); ok {
			return float64(a) == f
		}
		return b == any(a)
	case float64:
		if i, ok := b.(int64); ok {
			return a == float64(i)
		}
		return b == any(a)
	default:
		return a == b
	}
}
