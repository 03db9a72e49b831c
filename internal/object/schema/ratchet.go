package schema

import (
	"fmt"
	"reflect"
	"strings"
)

// prior is a value before an update: KEP-4008, "CRD Validation Ratcheting". The zero prior means that the value has no
// counterpart, so everything in it counts as changed.
type prior struct {
	known bool
	value any
}

// child returns the prior of a property of v.
func (p prior) child(n *Node, key string) prior {
	was, ok := p.value.(map[string]any)
	if !p.known || !ok {
		return prior{}
	}
	if c, _ := n.child(key); c == nil {
		return prior{}
	}
	value, ok := was[key]
	return prior{ok, value}
}

// items returns a function that finds the prior of an element of a list: the old element with the same keys, for lists
// of type map. Elements of other lists have none.
func (p prior) items(n *Node) func(v any) prior {
	was, ok := p.value.([]any)
	if !p.known || !ok || n.Items == nil || !n.isMapList() {
		return func(any) prior { return prior{} }
	}
	var index map[any]any
	return func(v any) prior {
		if index == nil {
			index = make(map[any]any, len(was))
			for _, e := range was {
				if key, ok := n.correlationKey(e); ok {
					if _, again := index[key]; !again {
						index[key] = e
					}
				}
			}
		}
		if key, ok := n.correlationKey(v); ok {
			e, ok := index[key]
			return prior{ok, e}
		}
		return prior{}
	}
}

func (n *Node) isMapList() bool {
	return n.Type == "array" && n.ListType == "map" && len(n.ListMapKeys) > 0
}

// correlationKey returns the identity of an element of a map list. All keys must exist and be scalars.
func (n *Node) correlationKey(v any) (key any, ok bool) {
	item, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	if len(n.ListMapKeys) == 1 {
		key = item[n.ListMapKeys[0]]
		return key, isScalar(key)
	}
	var b strings.Builder
	for _, name := range n.ListMapKeys {
		verb := "\x00%v"
		switch item[name].(type) {
		case string:
			verb = "\x00%q"
		case float64:
			verb = "\x00%f"
		case int64, bool:
		default:
			return nil, false
		}
		fmt.Fprintf(&b, verb, item[name])
	}
	return b.String(), true
}

// isScalar reports whether v is a scalar and not null.
func isScalar(v any) bool {
	switch v.(type) {
	case bool, float64, int64, string:
		return true
	}
	return false
}

// unchanged reports whether v equals its prior value for ratcheting: the order of map lists does not matter, and an
// object with a field unknown to the schema is never unchanged.
func (n *Node) unchanged(v any, p prior) bool {
	if !p.known {
		return false
	}
	switch v := v.(type) {
	case nil:
		return p.value == nil
	case map[string]any:
		was, ok := p.value.(map[string]any)
		if !ok || len(was) != len(v) {
			return false
		}
		for key, e := range v {
			c, _ := n.child(key)
			if c == nil || !c.unchanged(e, p.child(n, key)) {
				return false
			}
		}
		return true
	case []any:
		was, ok := p.value.([]any)
		if !ok || len(was) != len(v) {
			return false
		}
		if n.ListType != "map" {
			return len(v) == 0 || reflect.DeepEqual(v, was)
		}
		item := p.items(n)
		for _, e := range v {
			if q := item(e); !q.known || !n.Items.unchanged(e, q) {
				return false
			}
		}
		return true
	}
	switch p.value.(type) {
	case map[string]any, []any:
		return false
	}
	return v == p.value
}
