package schema

import "github.com/bowsprit/bowsprit/internal/object/codec"

// Settled reports whether the JSON of a stored object is certain to be what decoding, NormalizeStored and encoding make
// of it, so that all three can be left out: it is written as codec writes it, nothing in it goes, and no default is
// missing. apiVersion and kind must stand in it, beside metadata that are well formed and have a generation. False says
// only that it is not certain: fractions and embedded resources, for instance, are not looked into.
func (s *Schema) Settled(raw []byte, apiVersion, kind string) bool {
	if s.root.flags.has(metaBelow) || s.preserve {
		return false
	}
	w := settling{Canonical: codec.ReadCanonical(raw), apiVersion: apiVersion, kind: kind}
	return w.Kind() == '{' && w.object(s.root, true) && w.resource == 3 && w.Done()
}

// settling walks an object and its schema side by side. Its methods pass one value, or answer false.
type settling struct {
	codec.Canonical
	apiVersion, kind string
	resource         int // how many of the fields that every resource has were found
	depth            int // of lists
}

// maxLists is how many lists in lists are looked into. What is in them need not be a schema's, so nothing else ends it.
const maxLists = 100

// value passes a value that n describes; nil describes what has no fields.
func (w *settling) value(n *Node) bool {
	switch w.Kind() {
	case 'n': // it stays, goes, or becomes a default
		return n != nil && n.Nullable && w.Scalar()
	case '{':
		return w.object(n, false)
	case '[':
		return w.list(n)
	}
	return w.Scalar()
}

func (w *settling) object(n *Node, root bool) bool {
	missing := 0 // defaults
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

// ofResource passes a field that every resource has. What a schema says of it, rarely more than a type, matters only if
// it has defaults.
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
			return false // what it preserves depends on where it is
		}
		items = n.Items
	}
	return w.each(func() bool { return w.value(items) })
}

// each passes a list whose items the function passes.
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
		return w.text() // a deletionGracePeriodSeconds says false: the object is on its way out
	}) && counted
}

func (w *settling) text() bool {
	_, _, ok := w.Text()
	return ok
}
