package schema

import (
	"context"

	"github.com/bowsprit/bowsprit/internal/object/schema/format"
)

// walk is one validation in progress: it checks the context between values, and caches texts that did not match a
// pattern, so that explain need not match them again. The zero walk has no context.
type walk struct {
	schema *Schema
	done   <-chan struct{} // of the context; nil if it never ends
	left   int             // work left until done is checked again
	ended  bool            // the context has ended; the results are incomplete

	mismatches [4]mismatch // the most recent ones
	mismatched uint        // total number
}

// mismatch is a text that the pattern of a node does not match.
type mismatch struct {
	node *Node
	text string
}

// lookEvery is the amount of work between two checks of the context: a value counts as one, and so do 64 bytes of text
// matched against a pattern.
const lookEvery = 1024

func newWalk(ctx context.Context, s *Schema) walk {
	return walk{schema: s, done: ctx.Done(), left: lookEvery}
}

// over reports whether the walk must end. It is called for each value.
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

// matches reports whether text matches the valid pattern of n. It is false if the walk must end.
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
	matched, ended := format.Match(n.pattern, n.size, text, w.done)
	if matched || ended {
		w.ended = w.ended || ended
		return matched
	}
	w.mismatches[w.mismatched%uint(len(w.mismatches))] = mismatch{n, text}
	w.mismatched++
	return false
}
