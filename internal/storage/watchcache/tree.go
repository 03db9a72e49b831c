package watchcache

import "slices"

// tree is a persistent B-tree of entries, ordered by key: the entry's own, or an index key. A root never changes for
// its readers. The single writer changes copies of the nodes on the path, and copies each node at most once between two
// freezes. Nodes know the size of their subtree, so positions and counts cost the depth of the tree, not its size.
//
// google/btree was the alternative: it shares nodes in the same way but cannot count, and a lookup allocates an entry.
type tree struct {
	root *node
	era  *era // nodes of this era belong to the writer
	// unreadable is the number of unreadable entries.
	unreadable int
}

// era distinguishes nodes that the writer may change from nodes that a reader may hold. Its size is not zero, so that
// each has a distinct address.
type era struct{ _ byte }

type node struct {
	era     *era
	keys    []string // keys of the entries, side by side: a search touches no entry
	entries []*Entry
	kids    []*node // nil in a leaf; otherwise one more than entries
	size    int     // entries in the subtree
	bytes   int     // of their JSON
}

// maxEntries of a node: 31 pointers and 31 strings fill size classes of the allocator, and a copied node stays at 1 KB.
const (
	maxEntries = 31
	minEntries = maxEntries / 2
)

// freeze returns the root for readers; later changes do not touch it.
func (t *tree) freeze() *node {
	t.era = nil
	return t.root
}

func (t *tree) own(n *node) *node {
	if t.era == nil {
		t.era = new(era)
	}
	if n == nil {
		return &node{era: t.era}
	}
	if n.era == t.era {
		return n
	}
	return &node{
		era: t.era, keys: roomy(n.keys), entries: roomy(n.entries), kids: roomy(n.kids), size: n.size, bytes: n.bytes,
	}
}

// roomy copies s with room for one more element, for an insertion.
func roomy[T any](s []T) []T {
	if s == nil {
		return nil
	}
	return append(make([]T, 0, len(s)+1), s...)
}

// put stores e under key and returns the entry that it replaces, or nil.
func (t *tree) put(key string, e *Entry) (old *Entry) {
	root, s, old := t.insert(t.root, key, e)
	t.unreadable += e.unread() - old.unread()
	if s.right != nil {
		root = &node{
			era: t.era, keys: []string{s.key}, entries: []*Entry{s.entry}, kids: []*node{root, s.right},
			size: root.size + s.right.size + 1, bytes: root.bytes + s.right.bytes + s.entry.length(),
		}
	}
	t.root = root
	return old
}

// spill is the right part of a split node: an entry, then a node. right is nil if there was no split.
type spill struct {
	key   string
	entry *Entry
	right *node
}

// insert returns the changed node and, after a split, the part that spills over.
func (t *tree) insert(n *node, key string, e *Entry) (self *node, over spill, old *Entry) {
	n = t.own(n)
	i, found := n.find(key)
	switch {
	case found:
		// The new key is the same text, but only its memory lives as long as the entry.
		old, n.keys[i], n.entries[i] = n.entries[i], key, e
		n.bytes += e.length() - old.length()
		return n, spill{}, old
	case n.kids == nil:
		n.keys, n.entries = slices.Insert(n.keys, i, key), slices.Insert(n.entries, i, e)
		n.size++
		n.bytes += e.length()
	default:
		n.kids[i], over, old = t.insert(n.kids[i], key, e)
		n.bytes += e.length()
		if old == nil {
			n.size++
		} else {
			n.bytes -= old.length()
		}
		if over.right != nil {
			n.keys, n.entries = slices.Insert(n.keys, i, over.key), slices.Insert(n.entries, i, over.entry)
			n.kids = slices.Insert(n.kids, i+1, over.right)
		}
	}
	if len(n.entries) <= maxEntries {
		return n, spill{}, old
	}
	mid := len(n.entries) / 2
	if i == len(n.entries)-1 {
		mid = len(n.entries) - 2 // keys inserted in order, as at load, fill the nodes
	}
	return n, t.split(n, mid), old
}

// split leaves mid entries in n and returns the next one and a node with the rest.
func (t *tree) split(n *node, mid int) spill {
	out := spill{key: n.keys[mid], entry: n.entries[mid]}
	right := &node{era: t.era, keys: slices.Clone(n.keys[mid+1:]), entries: slices.Clone(n.entries[mid+1:])}
	n.keys, n.entries = slices.Clone(n.keys[:mid]), slices.Clone(n.entries[:mid])
	if n.kids != nil {
		right.kids = slices.Clone(n.kids[mid+1:])
		n.kids = slices.Clone(n.kids[:mid+1])
	}
	right.count()
	n.count()
	out.right = right
	return out
}

// remove deletes the entry of key and returns it, or nil.
func (t *tree) remove(key string) (old *Entry) {
	if t.root.get(key) == nil {
		return nil
	}
	root, old := t.cut(t.root, key)
	t.unreadable -= old.unread()
	switch {
	case root.size == 0:
		root = nil
	case len(root.entries) == 0:
		root = root.kids[0]
	}
	t.root = root
	return old
}

// cut removes key, which exists in the subtree of n.
func (t *tree) cut(n *node, key string) (*node, *Entry) {
	n = t.own(n)
	i, found := n.find(key)
	n.size--
	if n.kids == nil {
		old := n.entries[i]
		n.bytes -= old.length()
		n.keys, n.entries = slices.Delete(n.keys, i, i+1), slices.Delete(n.entries, i, i+1)
		return n, old
	}
	var old *Entry
	if found { // the largest entry on its left replaces it
		old = n.entries[i]
		n.keys[i], n.entries[i] = n.kids[i].last()
		n.kids[i], _ = t.cut(n.kids[i], n.keys[i])
	} else {
		n.kids[i], old = t.cut(n.kids[i], key)
	}
	n.bytes -= old.length()
	if len(n.kids[i].entries) < minEntries {
		t.fill(n, i)
	}
	return n, old
}

// fill moves an entry from a neighbour to kid i of n, which has too few, or joins the two.
func (t *tree) fill(n *node, i int) {
	if i == len(n.kids)-1 {
		i--
	}
	left, right := t.own(n.kids[i]), n.kids[i+1]
	left.keys = slices.Concat(left.keys, n.keys[i:i+1], right.keys)
	left.entries = slices.Concat(left.entries, n.entries[i:i+1], right.entries)
	left.kids = slices.Concat(left.kids, right.kids)
	if len(left.entries) <= maxEntries {
		left.count()
		n.kids[i] = left
		n.keys, n.entries = slices.Delete(n.keys, i, i+1), slices.Delete(n.entries, i, i+1)
		n.kids = slices.Delete(n.kids, i+1, i+2)
		return
	}
	over := t.split(left, len(left.entries)/2)
	n.keys[i], n.entries[i] = over.key, over.entry
	n.kids[i], n.kids[i+1] = left, over.right
}

func (n *node) count() {
	n.size, n.bytes = len(n.entries), 0
	for _, e := range n.entries {
		n.bytes += e.length()
	}
	for _, k := range n.kids {
		n.size += k.size
		n.bytes += k.bytes
	}
}

// find returns the position of the first entry with a key at or after key.
func (n *node) find(key string) (int, bool) {
	lo, hi := 0, len(n.keys)
	for lo < hi {
		mid := (lo + hi) / 2
		switch at := n.keys[mid]; {
		case at < key:
			lo = mid + 1
		case at == key:
			return mid, true
		default:
			hi = mid
		}
	}
	return lo, false
}

func (n *node) last() (key string, e *Entry) {
	for n.kids != nil {
		n = n.kids[len(n.kids)-1]
	}
	return n.keys[len(n.keys)-1], n.entries[len(n.entries)-1]
}

func (n *node) len() int {
	if n == nil {
		return 0
	}
	return n.size
}

// get returns the entry of key, or nil. n may be nil.
func (n *node) get(key string) *Entry {
	for n != nil {
		i, found := n.find(key)
		if found {
			return n.entries[i]
		}
		if n.kids == nil {
			return nil
		}
		n = n.kids[i]
	}
	return nil
}

// weight is a number of entries and the size of their JSON in bytes.
type weight struct{ entries, bytes int }

func (n *node) weight() weight {
	if n == nil {
		return weight{}
	}
	return weight{n.size, n.bytes}
}

// below returns the weight of the entries with keys below key. n may be nil.
func (n *node) below(key string) (w weight) {
	for n != nil {
		i, found := n.find(key)
		w.entries += i
		for _, e := range n.entries[:i] {
			w.bytes += e.length()
		}
		if n.kids == nil {
			return w
		}
		kids := n.kids[:i]
		if found {
			kids = n.kids[:i+1]
		}
		for _, k := range kids {
			w.entries += k.size
			w.bytes += k.bytes
		}
		if found {
			return w
		}
		n = n.kids[i]
	}
	return w
}

// between returns the weight of the entries that scan calls f for.
func (n *node) between(from, end string) weight {
	w, before := n.weight(), weight{}
	if end != "" {
		w = n.below(end)
	}
	if from != "" {
		before = n.below(from)
	}
	return weight{max(0, w.entries-before.entries), max(0, w.bytes-before.bytes)}
}

// scan calls f for the entries with from <= key < end ("" means no end), in order, until f returns false. n may be nil.
func (n *node) scan(from, end string, f func(*Entry) bool) bool {
	if n == nil {
		return true
	}
	i := 0
	if from != "" {
		i, _ = n.find(from)
	}
	stop := len(n.entries)
	if end != "" {
		stop, _ = n.find(end)
	}
	if n.kids == nil {
		for _, e := range n.entries[i:max(i, stop)] {
			if !f(e) {
				return false
			}
		}
		return true
	}
	for ; i <= stop; i++ {
		if i == stop { // only the last kid can reach the end
			return n.kids[i].scan(from, end, f)
		}
		if !n.kids[i].scan(from, "", f) || !f(n.entries[i]) {
			return false
		}
		from = ""
	}
	return true
}
