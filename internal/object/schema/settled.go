package schema

import "github.com/bowsprit/bowsprit/internal/object/codec"

// Settled reports whether decoding, NormalizeStored and encoding certainly leave the JSON of a stored object unchanged,
// so that all three can be skipped: it has codec's format, nothing in it is dropped, and no default is missing. It must
// contain apiVersion and kind, and well-formed metadata with a generation. False only means uncertain: fractions and
// embedded resources, for instance, are not examined.
func (s *Schema) Settled(raw []byte, apiVersion, kind string) bool {
	if s.root.flags.has(metaBelow) || s.preserve {
		return false
	}
	w := settling{Canonical: codec.ReadCanonical(raw), apiVersion: apiVersion, kind: kind}
	return w.Kind() == '{' && w.object(s.root, true) && w.resource == 3 && w.Done()
}

// settling walks an object and its schema side by side. Its methods pass one value, or return false.
type settling struct {
	codec.Canonical
	apiVersion, kind string
	resource         int // number of fields common to all resources found so far
	depth            int // of nested lists
}

// maxLists limits the depth of nested lists. They may be outside of the schema, so nothing else bounds the recursion.
const maxLists = 100

// value passes a value described by n; nil describes a value without fields.
func (w *settling) value(n *Node) bool {
	switch w.Kind() {
	case 'n': // it stays, is dropped, or becomes a default
		return n != nil && n.Nullable && w.Scalar()
	case '{':
		return w.object(n, false)
	case '[':
		return w.list(n)
	}
	return w.Scalar()
}

func (w *settling) object(n *Node, root bool) bool {
	missing := 0 // number of missing defaults
	if n != nil {
		missing = len(n.fills)
	}
	return w.Fields(func(name []byte) bool {
		if n == nil || !codec.Plain(name) {
			return false
		}
		child, known := n.Properties[string(name)]
		if known && child.Default != nil {
			missing--
		}
		switch {
		case root && isMeta(string(name)):
			return w.ofResource(string(name), child, known, n)
		case known:
			return w.value(child)
		case n.flags.has(hasAdditional):
			return w.value(n.AdditionalProperties)
		}
		return n.PreserveUnknown && w.Skip()
	}) && missing == 0
}

// ofResource passes a field common to all resources. Its schema, rarely more than a type, matters only if it has
// defaults.
func (w *settling) ofResource(name string, n *Node, known bool, root *Node) bool {
	if !known {
		n = root.AdditionalProperties
	}
	if n != nil && n.flags.has(defaultsBelow) {
		return false
	}
	w.resource++
	switch name {
	case "apiVersion":
		return w.is(w.apiVersion)
	case "kind":
		return w.is(w.kind)
	}
	return w.metadata()
}

// is passes the given string, which needs no escapes.
func (w *settling) is(want string) bool {
	text, escaped, ok := w.Text()
	return ok && !escaped && string(text) == want
}

func (w *settling) list(n *Node) bool {
	var items *Node
	if n != nil {
		if n.PreserveUnknown {
			return false // the preserved parts depend on the place
		}
		items = n.Items
	}
	return w.each(func() bool { return w.value(items) })
}

// each passes a list whose items all pass item.
func (w *settling) each(item func() bool) bool {
	w.depth++
	defer func() { w.depth-- }()
	return w.depth <= maxLists && w.Items(item)
}

// metadata passes metadata that SalvageMetadata leaves alone, with a generation.
func (w *settling) metadata() bool {
	counted := false
	return w.Fields(func(name []byte) bool {
		switch string(name) {
		case "labels", "annotations":
			return w.Fields(func([]byte) bool { return w.text() })
		case "ownerReferences", "managedFields":
			return w.Kind() == '[' && w.Skip()
		case "finalizers":
			return w.each(w.text)
		case "generation":
			counted = '1' <= w.Kind() && w.Kind() <= '9'
			return counted && w.Scalar()
		}
		return w.text() // false for a deletionGracePeriodSeconds: the object is about to go
	}) && counted
}

func (w *settling) text() bool {
	_, _, ok := w.Text()
	return ok
}
