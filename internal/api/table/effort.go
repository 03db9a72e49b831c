package table

import (
	"math"

	"k8s.io/client-go/util/jsonpath"
)

// The author of a definition chooses a column's path, and a library without interruption or limits evaluates it for
// each row. So the number of its results is estimated first: each ".." visits everything below each previous result,
// and each alternative of a union ([0,1]) evaluates the rest of the path again. A cell that exceeds the limit stays
// empty. Fields, wildcards, slices and filters only select among existing values.

const (
	// maxDescents is the maximum number of ".." in a path. Even small objects have too many ways through more.
	maxDescents = 8
	// rowEffort and effortPerByte bound the number of values that the cells of a row may visit, a fraction of a
	// second's worth.
	rowEffort     = 1 << 22
	effortPerByte = 4
	// freeUnions is how many alternatives a path may have in all without being counted.
	freeUnions = 16
)

// branching describes how a path multiplies its results.
type branching struct {
	descents int    // number of ".."
	unions   uint64 // product of the alternatives of its unions, at most math.MaxUint32
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

// visited returns how many values k consecutive descents from v visit, for each k up to most: the first visits
// everything below v, and the others start again at each result. A string counts with its bytes, which the library
// visits too.
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

// allowance is the remaining effort for one row.
type allowance uint64

func newAllowance(row Row) allowance {
	return allowance(rowEffort + effortPerByte*len(row.JSON))
}

// spend deducts the cost of a path in an object, and reports whether enough was left.
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
