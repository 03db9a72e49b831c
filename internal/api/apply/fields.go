package apply

import "maps"

// fields is a set of fields in the format of managedFields (fieldsV1), decoded JSON: a tree with path elements as keys,
// "f:name" for a map's field, `k:{"name":"a"}` and "v:..." for a list's item. A node is in the set if it is empty or
// has the key "."; otherwise it only leads to nodes below. The root is never in the set. Every node of a tree made by
// this package is in the set or leads to another.
//
// Nodes may be shared between trees and must not change once they are part of one.
type fields = map[string]any

// own is the key that marks a node with children as a member.
const own = "."

func member(f fields) bool {
	if len(f) == 0 {
		return true
	}
	_, ok := f[own]
	return ok
}

// subtract returns f without the members of g; nil if nothing is left. changed is false if the result is f itself. As
// roots, f and g must not be empty.
func subtract(f, g fields) (out fields, changed bool) {
	out = f
	edit := func() {
		if !changed {
			out, changed = maps.Clone(f), true
		}
	}
	for key := range smaller(f, g) {
		mine, ok := f[key].(fields)
		value, common := g[key]
		if !ok || !common || key == own {
			continue
		}
		theirs, _ := value.(fields)
		rest, differs := subtract(mine, theirs)
		if !differs {
			continue
		}
		edit()
		if rest == nil {
			delete(out, key)
		} else {
			out[key] = rest
		}
	}
	wasMember := member(f)
	isMember := wasMember && !member(g)
	if wasMember && !isMember {
		edit()
		delete(out, own)
	}
	if !changed {
		return f, false
	}
	switch _, marked := out[own]; {
	case len(out) == 0 && !isMember:
		return nil, true
	case len(out) == 1 && marked:
		return fields{}, true
	}
	return out, true
}

// smaller returns the argument with fewer nodes at its top. Many managers may each own little while a change is large,
// or the reverse.
func smaller(f, g fields) fields {
	if len(f) < len(g) {
		return f
	}
	return g
}

// unite returns the members of both. nil is the empty set.
func unite(f, g fields) fields {
	if f == nil {
		return g
	}
	if g == nil {
		return f
	}
	out := make(fields, max(len(f), len(g)))
	maps.Copy(out, f)
	for key, value := range g {
		if key == own {
			continue
		}
		theirs, _ := value.(fields)
		if mine, ok := f[key].(fields); ok {
			out[key] = uniteNodes(mine, theirs)
		} else {
			out[key] = theirs
		}
	}
	return out
}

// uniteNodes is unite below the root, where an empty node is a member.
func uniteNodes(f, g fields) fields {
	if len(f) == 0 && len(g) == 0 {
		return f
	}
	out := unite(f, g)
	if member(f) || member(g) {
		out[own] = fields{} // out is new: one of them is not nil
	}
	return out
}

// sameFields reports whether two trees, or any decoded JSON, are equal.
func sameFields(a, b fields) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		other, ok := b[key].(fields)
		mine, _ := value.(fields)
		if !ok || !sameFields(mine, other) {
			return false
		}
	}
	return true
}

// fits reports whether f matches the schema at p: atomic values have no fields below them, and so on down. It may not
// if the schema has changed since f was written. isLeaf is true for a member without children. Impossible keys do not
// match either.
func fits(p position, f fields, isLeaf bool) bool {
	scalar, list, object := p.shapes()
	switch {
	case object:
		if rest, ok := p.rest(); ok && len(p.node.Properties) == 0 && !p.root && guessed(rest) {
			return true // nothing is declared here, so nothing can have changed
		}
		if p.atomicMap() {
			return isLeaf || len(f) == 0
		}
		for key, value := range f {
			child, ok := value.(fields)
			if !ok {
				return false
			}
			if key == own {
				continue
			}
			if len(key) < 2 || key[:2] != "f:" {
				return false
			}
			if below, _, ok := p.field(key[2:]); ok && !fits(below, child, len(child) == 0) {
				return false
			}
		}
		return true
	case scalar:
		return len(f) == 0
	case list:
		if p.atomicList() {
			return isLeaf
		}
		item := p.item()
		for key, value := range f {
			child, ok := value.(fields)
			if !ok {
				return false
			}
			if key == own {
				continue
			}
			if len(key) < 2 || key[:2] != "k:" && key[:2] != "v:" || !fits(item, child, len(child) == 0) {
				return false
			}
		}
		return true
	}
	return false
}

// guessed reports whether the type at p is made up from the value.
func guessed(p position) bool {
	return p.node == deduced || p.node.Type == "" && p.node != untyped || p.node.Type == "string" &&
		scalarType(p) == "untyped"
}
