package format

import (
	"fmt"
	"regexp/syntax"
)

// MaxPatterns is the sum of the sizes of the patterns in one definition: a little more than the library allows for a
// single pattern. Compiling so many instructions takes about a second, and the result takes about 130 MB.
const MaxPatterns = 3_500_000

// PatternSize estimates the instructions of a compiled pattern, without compiling it. It is 0 for an invalid pattern.
// The cost is linear in the text.
func PatternSize(text string) int {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	return sizeOf(re)
}

// sizeOf follows the compiler of the library. Its parser bounds the result and the depth.
func sizeOf(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += sizeOf(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCapture:
		n += 2
	case syntax.OpAlternate:
		n += len(re.Sub)
	case syntax.OpRepeat:
		switch {
		case re.Max == -1:
			n = n*max(re.Min, 1) + 1
		default:
			n = n*re.Max + re.Max - re.Min
		}
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		n++
	}
	return max(n, 1)
}

// Patterns bounds the sizes of the patterns of one definition. The zero value has taken none. It is not safe for
// concurrent use.
//
// Go's library matches in time linear in the text, times the number of instructions of the compiled pattern: {1000}
// repeats an instruction a thousand times, so a pattern of 20 KB becomes more than 100 MB.
type Patterns struct {
	used int
	seen map[string]bool
}

// Take takes the size of a pattern out of the budget, for equal patterns once. The error is about a pattern for which
// the budget does not suffice.
func (b *Patterns) Take(text string) error {
	if b.seen[text] {
		return nil
	}
	n := PatternSize(text)
	if b.used+n > MaxPatterns {
		return fmt.Errorf("the patterns of the definition compile to more than %d instructions; "+
			"repeat counts multiply them", MaxPatterns)
	}
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	b.used, b.seen[text] = b.used+n, true
	return nil
}
