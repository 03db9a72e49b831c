package format

import (
	"regexp/syntax"
	"strings"
	"testing"
)

var patterns = []string{
	"", "a", "abc", "a*", "a+", "a?", "a|b", "abc|abd|x", "(a)", "(?:a)", "[a-z]", "a{3}", "a{3,}", "a{0,}", "a{3,7}",
	"(ab){1000}", "a{1000}b{1000}", "(a|b){20,40}", "^a.*b$", `\pL{100}`, "(?i)k{50}", "((a{10}){10}){10}", "(a?){100}",
	`\bfoo\B`, "(a*)*", "[^a]{5}", "x{0}", "x{0,0}y", "(|a){9}",
}

// TestPatternSize compares sizes with the programs that the library compiles.
func TestPatternSize(t *testing.T) {
	t.Parallel()
	for _, text := range patterns {
		re, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := syntax.Compile(re.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if got, n := PatternSize(text), len(prog.Inst); n > 2*got+4 || got > 2*n {
			t.Errorf("%s: size %d, %d instructions", text, got, n)
		}
	}
	if n := PatternSize("("); n != 0 {
		t.Errorf("an invalid pattern has size %d", n)
	}
}

// TestPatterns takes patterns until the budget is used up.
func TestPatterns(t *testing.T) {
	t.Parallel()
	var b Patterns
	large := strings.Repeat("a{1000}", 3000)
	for i, c := range []struct {
		text string
		ok   bool
	}{
		{"a", true}, {large, true}, {large, true}, {strings.Repeat("b{1000}", 600), false}, {"b{1000}", true},
		{"(", true},
	} {
		if err := b.Take(c.text); (err == nil) != c.ok {
			t.Errorf("pattern %d: %v", i, err)
		}
	}
}
