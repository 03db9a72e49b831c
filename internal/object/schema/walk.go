package schema

import "context"

// walk is one validation under way: it notices the end of the context between values, and remembers texts that a
// pattern did not match, which explain need not find out again. The zero walk ends by itself only.
type walk struct {
	schema *Schema
	done   <-chan struct{} // of the context; nil if it never ends
	left   int             // how much may be done before done is looked at again
	ended  bool            // the context has; what has been found out is not all

	mismatches [4]mismatch // the last ones
	mismatched uint        // how many there were
}

// mismatch is a text that the pattern of a node does not match.
type mismatch struct {
	node *Node
	text string
}

// lookEvery is how much is done between two looks at the context: a value counts as one, and so do 64 bytes of text
// that a pattern is matched with.
const lookEvery = 1024

func newWalk(ctx context.Context, s *Schema) walk {
	return walk{schema: s, done: ctx.Done(), left: lookEvery}
}

// over reports whether the walk has to end. It is called for each value.
func (w *walk) over() bool {
	if w.left--; w.left >= 0 {
		return w.ended
	}
	return w.look()
}

func (w *walk) look() bool {
	w.left = lookEvery
	select {
	case <-w.done:
		w.ended = true
	default:
	}
	return w.ended
}

// matches reports whether text matches the pattern of n, which is valid. It is false if the walk has to end.
func (w *walk) matches(n *Node, text string) bool {
	if w.mismatched > 0 {
		for i := range w.mismatches {
			if m := &w.mismatches[i]; m.node == n && m.text == text {
				return false
			}
		}
	}
	if w.left -= len(text) / 64; w.left < 0 && w.look() {
		return false
	}
	if n.pattern.MatchString(text) {
		return true
	}
	w.mismatches[w.mismatched%uint(len(w.mismatches))] = mismatch{n, text}
	w.mismatched++
	return false
}
