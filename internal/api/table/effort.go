package table

import (
	"math"

	"k8s.io/client-go/util/jsonpath"
)

// A path of a column is chosen by the author of a definition, and evaluated for each row by a library that can neither
// be interrupted nor bounded. What multiplies its results is looked at first: each ".." visits everything below each
// result of what stands before it, and each alternative of a union ([0,1]) follows the rest of the path once more. A
// cell that would take too much stays empty. Fields, wildcards, slices and filters only choose among what is below.

const (
	// maxDescents is how many ".." a path may have. Even small objects have too many ways through more.
	maxDescents = 8
	// rowEffort and effortPerByte are how many values the cells of a row may visit: a fraction of a second's worth.
	rowEffort     = 1 << 22
	effortPerByte = 4
	// freeUnions is how many alternatives a path may have in all without being counted.
	freeUnions = 16
)

// branching is what multiplies the results of a path.
type branching struct {
	descents int    // how often it says ".."
	unions   uint64 // the product of the alternatives of its unions, at most math.MaxUint32
}

func branchingOf(n jsonpath.Node) branching {
	b := branching{unions: 1}
	b.add(n)
	return b
}

func (b *branching) add(n jsonpath.Node) {
	switch n := n.(type) {
	case *jsonpath.ListNode:
		if n == nil {
			return
		}
		for _, e := range n.Nodes {
			b.add(e)
		}
	case *jsonpath.RecursiveNode:
		b.descents++
	case *jsonpath.FilterNode: // its paths begin at each element
		inner := branching{unions: 1}
		inner.add(n.Left)
		inner.add(n.Right)
		b.times(inner.unions)
		if b.descents += inner.descents; inner.descents > 0 {
			b.descents++
		}
	case *jsonpath.UnionNode:
		b.times(uint64(len(n.Nodes)))
		for _, e := range n.Nodes {
			b.add(e)
		}
	}
}

func (b *branching) times(n uint64) { b.unions = min(b.unions*max(n, 1), math.MaxUint32) }

// cheap reports whether the effort of the path grows as the object does.
func (b branching) cheap() bool { return b.descents == 0 && b.unions <= freeUnions }

// effort bounds how many values the path visits in an object.
func (b branching) effort(obj map[string]any) uint64 {
	if b.descents > maxDescents {
		return math.MaxUint64
	}
	visits := visited(obj, b.descents)
	return min(visits[b.descents], math.MaxUint32) * b.unions
}

// visited returns how many values k descents in a row visit that begin at v, for each k up to most: the first visits
// all below v, and the others begin anew at each of them. A text counts with its bytes, which the library visits too.
func visited(v any, most int) (visits [maxDescents + 1]uint64) {
	size := uint64(1)
	child := func(e any) {
		below := visited(e, most)
		for k := 1; k <= most; k++ {
			visits[k] = min(visits[k]+below[k], math.MaxUint32)
		}
	}
	switch v := v.(type) {
	case string:
		size += uint64(len(v))
	case map[string]any:
		for _, e := range v {
			child(e)
		}
	case []any:
		for _, e := range v {
			child(e)
		}
	}
	visits[0] = 1
	for k := 1; k <= most; k++ {
		visits[k] = min(visits[k]+size+visits[k-1], math.MaxUint32)
	}
	return visits
}

// allowance is what is left of the effort for one row.
type allowance uint64

func newAllowance(row Row) allowance {
	return allowance(rowEffort + effortPerByte*len(row.JSON))
}

// spend takes what a path costs in an object, and reports whether there was as much left.
func (a *allowance) spend(b branching, obj map[string]any) bool {
	if b.cheap() {
		return true
	}
	effort := b.effort(obj)
	if effort > uint64(*a) {
		return false
	}
	*a -= allowance(effort)
	return true
}
