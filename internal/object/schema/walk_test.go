package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestValidationEnds checks that every validation stops when its context ends, and returns the context's error.
func TestValidationEnds(t *testing.T) {
	s := compileJSON(t, `{"type":"object","properties":{"good":{"type":"array","items":{"type":"integer"}},
		"bad":{"type":"array","items":{"type":"string"}},"text":{"type":"string","pattern":"^(a|b)*$"},
		"status":{"type":"object","properties":{"good":{"type":"array","items":{"type":"integer"}}}}}}`, Options{})
	many := "[" + strings.Repeat("1,", 5000) + "1]"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i, text := range []string{
		`{"good":` + many + `}`, `{"bad":` + many + `}`, `{"text":"` + strings.Repeat("ab", 100000) + `"}`,
		`{"status":{"good":` + many + `}}`,
	} {
		obj := parse(t, text)
		if _, err := s.ValidateAfter(t.Context(), nil, obj, nil, nil); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		cancel()
		if errs, err := s.ValidateAfter(ctx, nil, obj, nil, nil); !errors.Is(err, context.Canceled) || errs != nil {
			t.Errorf("%d: %d errors, %v", i, len(errs), err)
		}
		if _, err := s.ValidateStatus(ctx, nil, obj, nil, nil); errors.Is(err, context.Canceled) != (i == 3) {
			t.Errorf("status, %d: %v", i, err)
		}
	}
}

// TestPatternsMatchOnce checks that a text that does not match a pattern is not matched again for the error.
func TestPatternsMatchOnce(t *testing.T) {
	s := compileJSON(t, `{"type":"object","properties":{"a":{"type":"string","pattern":"^x+$"},
		"b":{"anyOf":[{"pattern":"^y+$"},{"pattern":"^z+$"}],"type":"string"}}}`, Options{})
	long := strings.Repeat("x", 1<<16) + "!"
	obj := map[string]any{"a": long, "b": long}
	w := newWalk(t.Context(), s)
	if w.valid(s.root, obj) {
		t.Fatal("it is valid")
	}
	for range 10 { // all findings of valid, from any start
		w.valid(s.root.Properties["a"], long)
		w.valid(s.root.Properties["b"], long)
	}
	found := w.mismatched
	if errs := w.explain(s.root, obj, prior{}, nil); len(errs) != 3 {
		t.Errorf("%d errors: %.300s", len(errs), fmt.Sprint(errs))
	}
	if found != 3 || w.mismatched != found {
		t.Errorf("%d matches failed, %d more to explain them", found, w.mismatched-found)
	}
}

// TestMatchesEnd checks that a match that would take minutes stops when the context ends, though it has begun.
func TestMatchesEnd(t *testing.T) {
	s := compileJSON(t, `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?:`+
		strings.Repeat("a?", 10_000)+`)*b"}}}`, Options{})
	ended := make(chan struct{})
	close(ended)
	w := walk{schema: s, done: ended, left: 1 << 60} // it does not look before the match
	if w.valid(s.root, map[string]any{"a": strings.Repeat("a", 3_000_000)}) || !w.ended {
		t.Errorf("ended %v, %d mismatches", w.ended, w.mismatched)
	}
}
