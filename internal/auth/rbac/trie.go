package rbac

import (
	"math/bits"
	"slices"
)

// trie is an immutable map: a hash array mapped trie (Bagwell, "Ideal Hash Trees", 2001) in the layout of Steindorfer
// and Vinju ("Optimizing Hash-Array Mapped Tries", 2015). A write copies the path to the change and shares the rest
// with the previous map. The zero value is empty.
//
// Keys come with their hash. Nodes created in a batch are changed in place by later writes of the same batch, because
// no reader has seen them yet; batches are numbered from 1.
type trie[K comparable, V any] struct{ root *node[K, V] }

// node is one level of a trie: five bits of the hash select the entry.
type node[K comparable, V any] struct {
	batch    uint64
	leafBits uint32 // entries that are leaves
	nodeBits uint32 // entries that are nodes; none is both
	leaves   []leaf[K, V]
	nodes    []*node[K, V]
}

type leaf[K comparable, V any] struct {
	hash  uint64
	key   K
	value V
}

const (
	levelBits = 5
	// lastShift is the level at which a hash is exhausted: nodes there are plain lists of leaves.
	lastShift = 65
)

func entryBit(hash uint64, shift uint) uint32 { return 1 << (hash >> shift & (1<<levelBits - 1)) }

func position(set, bit uint32) int { return bits.OnesCount32(set & (bit - 1)) }

// get returns the value of a key.
func (t trie[K, V]) get(hash uint64, key K) (value V, ok bool) {
	n := t.root
	for shift := uint(0); n != nil; shift += levelBits {
		if shift == lastShift {
			if i := n.find(key); i >= 0 {
				return n.leaves[i].value, true
			}
			return value, false
		}
		bit := entryBit(hash, shift)
		if n.leafBits&bit != 0 {
			l := &n.leaves[position(n.leafBits, bit)]
			if l.hash == hash && l.key == key {
				return l.value, true
			}
			return value, false
		}
		if n.nodeBits&bit == 0 {
			return value, false
		}
		n = n.nodes[position(n.nodeBits, bit)]
	}
	return value, false
}

// find returns the index of a key in a list node, or -1.
func (n *node[K, V]) find(key K) int {
	return slices.IndexFunc(n.leaves, func(l leaf[K, V]) bool { return l.key == key })
}

// put returns the trie with a value for a key.
func (t trie[K, V]) put(batch, hash uint64, key K, value V) trie[K, V] {
	return trie[K, V]{t.root.put(batch, 0, leaf[K, V]{hash, key, value})}
}

func (n *node[K, V]) put(batch uint64, shift uint, l leaf[K, V]) *node[K, V] {
	n = n.owned(batch)
	if shift == lastShift {
		if i := n.find(l.key); i >= 0 {
			n.leaves[i] = l
		} else {
			n.leaves = append(n.leaves, l)
		}
		return n
	}
	bit := entryBit(l.hash, shift)
	switch {
	case n.leafBits&bit != 0:
		i := position(n.leafBits, bit)
		old := n.leaves[i]
		if old.hash == l.hash && old.key == l.key {
			n.leaves[i] = l
			return n
		}
		var below *node[K, V]
		below = below.put(batch, shift+levelBits, old).put(batch, shift+levelBits, l)
		n.leaves = slices.Delete(n.leaves, i, i+1)
		n.leafBits &^= bit
		n.nodes = slices.Insert(n.nodes, position(n.nodeBits, bit), below)
		n.nodeBits |= bit
	case n.nodeBits&bit != 0:
		i := position(n.nodeBits, bit)
		n.nodes[i] = n.nodes[i].put(batch, shift+levelBits, l)
	default:
		n.leaves = slices.Insert(n.leaves, position(n.leafBits, bit), l)
		n.leafBits |= bit
	}
	return n
}

// remove returns the trie without a key.
func (t trie[K, V]) remove(batch, hash uint64, key K) trie[K, V] {
	if _, ok := t.get(hash, key); !ok {
		return t
	}
	return trie[K, V]{t.root.remove(batch, 0, hash, key)}
}

// remove returns the node without a key below it; nil if nothing is left.
func (n *node[K, V]) remove(batch uint64, shift uint, hash uint64, key K) *node[K, V] {
	n = n.owned(batch)
	bit := entryBit(hash, shift)
	switch {
	case shift == lastShift:
		i := n.find(key)
		n.leaves = slices.Delete(n.leaves, i, i+1)
	case n.leafBits&bit != 0:
		i := position(n.leafBits, bit)
		n.leaves = slices.Delete(n.leaves, i, i+1)
		n.leafBits &^= bit
	default:
		i := position(n.nodeBits, bit)
		if n.nodes[i] = n.nodes[i].remove(batch, shift+levelBits, hash, key); n.nodes[i] == nil {
			n.nodes = slices.Delete(n.nodes, i, i+1)
			n.nodeBits &^= bit
		}
	}
	if len(n.leaves) == 0 && len(n.nodes) == 0 {
		return nil
	}
	return n
}

// owned returns a node that the batch may change.
func (n *node[K, V]) owned(batch uint64) *node[K, V] {
	switch {
	case n == nil:
		return &node[K, V]{batch: batch}
	case n.batch == batch:
		return n
	}
	return &node[K, V]{
		batch: batch, leafBits: n.leafBits, nodeBits: n.nodeBits,
		leaves: slices.Clone(n.leaves), nodes: slices.Clone(n.nodes),
	}
}
