package cel

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// pair is a value and its counterpart before the update. The zero pair has no counterpart.
type pair struct {
	node     *schema.Node
	now, was any
	known    bool
}

// lineage holds the ratcheting state at a path of an object: the old and new value there, and the nearest ancestor that
// has both.
type lineage struct {
	here, above pair
}

// property descends to a field or map entry.
func (l lineage) property(name string) lineage {
	if !l.here.known {
		return l
	}
	if !l.above.known && (name == "apiVersion" || name == "kind") {
		return lineage{} // their values in another version are not comparable
	}
	return lineage{l.here.property(name), l.here}
}

// item descends to an element of a list; was is the old element with its keys, or nil.
func (l lineage) item(now, was any) lineage {
	if !l.here.known {
		return l
	}
	return lineage{l.here.item(now, was), l.here}
}

// unchanged reports whether a failure here is an old one.
func (l lineage) unchanged() bool {
	if l.here.known {
		return l.here.equal()
	}
	return l.above.equal()
}

func (p pair) property(name string) pair {
	now, ok := p.now.(map[string]any)
	was, ok2 := p.was.(map[string]any)
	if !ok || !ok2 {
		return pair{}
	}
	n := p.node.Properties[name]
	if n == nil {
		n = p.node.AdditionalProperties
	}
	v, ok := now[name]
	v2, ok2 := was[name]
	if n == nil || !ok || !ok2 {
		return pair{}
	}
	return pair{n, v, v2, true}
}

func (p pair) item(now, was any) pair {
	if was == nil || p.node.Items == nil {
		return pair{}
	}
	return pair{p.node.Items, now, was, true}
}

// equal compares the two values of p: lists of type map by keys; objects with fields unknown to the schema are never
// equal (KEP-4008).
func (p pair) equal() bool {
	if !p.known {
		return false
	}
	switch now := p.now.(type) {
	case nil:
		return p.was == nil
	case []any:
		was, ok := p.was.([]any)
		if !ok || len(now) != len(was) {
			return false
		}
		if p.node.ListType != "map" {
			return len(now) == 0 || reflect.DeepEqual(was, now)
		}
		old := newKeyed(p.node, was)
		for _, v := range now {
			if !p.item(v, old.find(v)).equal() {
				return false
			}
		}
		return true
	case map[string]any:
		was, ok := p.was.(map[string]any)
		if !ok || len(now) != len(was) {
			return false
		}
		for name := range now {
			if !p.property(name).equal() {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(p.was, p.now)
}

// keyed finds the elements of an old list of type map by their keys. Other lists have none that could be found.
type keyed struct {
	keys     []string
	elements []any
	index    map[any]any // made on first use
}

func newKeyed(n *schema.Node, elements []any) *keyed {
	if len(elements) == 0 || n.Type != "array" || n.ListType != "map" || len(n.ListMapKeys) == 0 {
		return nil
	}
	return &keyed{keys: n.ListMapKeys, elements: elements}
}

// find returns the first old element with the keys of v, or nil.
func (k *keyed) find(v any) any {
	if k == nil {
		return nil
	}
	key, ok := k.key(v)
	if !ok {
		return nil
	}
	if k.index == nil {
		k.index = make(map[any]any, len(k.elements))
		for _, e := range k.elements {
			if key, ok := k.key(e); ok {
				if _, again := k.index[key]; !again {
					k.index[key] = e
				}
			}
		}
	}
	return k.index[key]
}

// key returns the identity of an element: all its keys must exist and be scalars.
func (k *keyed) key(v any) (any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	if len(k.keys) == 1 {
		switch v := m[k.keys[0]].(type) {
		case bool, float64, int64, string:
			return v, true
		}
		return nil, false
	}
	var b strings.Builder
	for _, name := range k.keys {
		b.WriteByte(0)
		switch v := m[name].(type) {
		case bool:
			b.WriteString(strconv.FormatBool(v))
		case float64:
			b.WriteString(strconv.FormatFloat(v, 'f', 6, 64)) // precision as in Kubernetes
		case int64:
			b.WriteString(strconv.FormatInt(v, 10))
		case string:
			b.WriteString(strconv.Quote(v))
		default:
			return nil, false
		}
	}
	return b.String(), true
}
