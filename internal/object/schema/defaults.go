package schema

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// fillMissing sets the defaults of missing properties in m, and of properties that are null but not nullable. The
// defaults already contain their nested defaults.
func fillMissing(n *Node, m map[string]any) {
	for i := range n.fills {
		f := &n.fills[i]
		if v, ok := m[f.name]; !ok || v == nil && !f.node.Nullable {
			m[f.name] = runtime.DeepCopyJSONValue(f.node.expanded)
		}
	}
}

// HasDefault reports whether an object that lacks the named property at its root gets it by default.
func (s *Schema) HasDefault(name string) bool {
	return slices.ContainsFunc(s.root.fills, func(f property) bool { return f.name == name })
}

// fillBelow fills in the defaults everywhere below v.
func fillBelow(n *Node, v any) {
	if n.flags.has(defaultsBelow) {
		(&normalizer{fill: true}).below(n, v, false)
	}
}

// expandDefaults computes, from the leaves up, each default with its nested defaults, and the properties that have one.
func expandDefaults(n *Node) {
	if !n.flags.has(defaultsBelow) {
		return
	}
	n.fills = nil // a shared node is visited more than once
	for _, f := range n.fields {
		expandDefaults(f.node)
		if f.node.Default != nil {
			n.fills = append(n.fills, f)
		}
	}
	if n.Items != nil {
		expandDefaults(n.Items)
	}
	if n.AdditionalProperties != nil {
		expandDefaults(n.AdditionalProperties)
	}
	if n.Default != nil {
		n.expanded = runtime.DeepCopyJSONValue(n.Default)
		fillBelow(n, n.expanded)
	}
}

var errNotObject = errors.New("object root default value must be of object type")

// pruneDefaults prunes each default as if it were in its place in an object. The definition's validation refuses
// defaults that need it, but stored definitions may be older.
func pruneDefaults(root *Node) error {
	p := defaultPruner{root: root}
	return p.visit(root)
}

type defaultPruner struct {
	root *Node
	path []step
}

func (p *defaultPruner) visit(n *Node) error {
	if !n.flags.has(defaultsBelow) {
		return nil
	}
	if n.Default != nil {
		if err := p.prune(n); err != nil {
			return fmt.Errorf("prune default value: %w", err)
		}
	}
	if n.AdditionalProperties != nil {
		if err := p.below(step{key: "*"}, n.AdditionalProperties); err != nil {
			return err
		}
	}
	if n.Items != nil {
		if err := p.below(step{list: true}, n.Items); err != nil {
			return err
		}
	}
	for _, f := range n.fields {
		if err := p.below(step{key: f.name}, f.node); err != nil {
			return err
		}
	}
	return nil
}

func (p *defaultPruner) below(s step, n *Node) error {
	p.path = append(p.path, s)
	defer func() { p.path = p.path[:len(p.path)-1] }()
	return p.visit(n)
}

// prune puts n's default into an otherwise empty object, prunes that object, and extracts the rest.
func (p *defaultPruner) prune(n *Node) error {
	v := n.Default
	for i := len(p.path) - 1; i >= 0; i-- {
		if s := p.path[i]; s.list {
			v = []any{v}
		} else {
			v = map[string]any{s.key: v}
		}
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return errNotObject
	}
	z := normalizer{prune: true, coerce: true, salvage: true, root: true}
	z.run(p.root, obj)
	if z.err != nil {
		return z.err
	}
	v = obj
	for _, s := range p.path {
		switch parent := v.(type) {
		case map[string]any:
			v = parent[s.key]
		case []any:
			v = parent[0]
		}
	}
	n.Default = v
	return nil
}

// WithDefaults returns v, a value at n, with the defaults of missing fields below. v is not changed.
func (n *Node) WithDefaults(v any) any {
	if n.flags.has(defaultsBelow) {
		v = runtime.DeepCopyJSONValue(v)
		fillBelow(n, v)
	}
	return v
}
