package format

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestMatchEnds matches a long text for a request that has ended. The whole match would take minutes.
func TestMatchEnds(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	close(done)
	pattern := "^(?:" + strings.Repeat("a?", 10_000) + ")*b"
	re := regexp.MustCompile(pattern)
	if matched, ended := Match(re, PatternSize(pattern), strings.Repeat("a", 3_000_000), done); matched || !ended {
		t.Errorf("matched %v, ended %v", matched, ended)
	}
	if matched, ended := Match(re, PatternSize(pattern), "ab", done); !matched || ended {
		t.Errorf("a short text: matched %v, ended %v", matched, ended)
	}
}

// TestFindEnds does the same with searches.
func TestFindEnds(t *testing.T) {
	t.Parallel()
	text := "^(?:" + strings.Repeat("a?", 10_000) + ")*b"
	p := NewPattern(regexp.MustCompile(text), PatternSize(text))
	for _, over := range []bool{true, false} {
		in := "ab"
		if over {
			in = strings.Repeat("a", 3_000_000)
		}
		if at, ended := p.Find(in, func() bool { return over }); (at == nil) != over || ended != over {
			t.Errorf("found %v, ended %v", at, ended)
		}
		if found, ended := p.FindAll(in, -1, func() bool { return over }); (found == nil) != over || ended != over {
			t.Errorf("found %v, ended %v", found, ended)
		}
	}
}

// TestFindAllEnds searches a text with a pattern that reads the rest of the text for each match.
func TestFindAllEnds(t *testing.T) {
	t.Parallel()
	p, calls := NewPattern(regexp.MustCompile("a.*b|a"), PatternSize("a.*b|a")), 0
	found, ended := p.FindAll(strings.Repeat("a", 1_000_000), -1, func() bool {
		calls++
		return calls > 2
	})
	if !ended || len(found) > 100 {
		t.Errorf("%d matches, ended %v", len(found), ended)
	}
}

// FuzzMatch compares searches that may end with the library's.
func FuzzMatch(f *testing.F) {
	for _, text := range patterns {
		for n := range 4 {
			f.Add(text, "xaab\xffbé foo abc", n-1)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, text string, n int) {
		re, err := regexp.Compile(pattern)
		if err != nil || PatternSize(pattern) > 10_000 {
			return
		}
		// The size given is so large that the text is always read in steps.
		p, never := NewPattern(re, quick+1), func() bool { return false }
		if got, ended := p.Match(text, never); got != re.MatchString(text) || ended {
			t.Errorf("%q, %q: matched %v (ended %v)", pattern, text, got, ended)
		}
		if got, _ := p.Find(text, never); !reflect.DeepEqual(got, re.FindStringIndex(text)) {
			t.Errorf("%q, %q: found %v, want %v", pattern, text, got, re.FindStringIndex(text))
		}
		if got, _ := p.FindAll(text, n, never); !reflect.DeepEqual(got, re.FindAllString(text, n)) {
			t.Errorf("%q, %q: found %q, want %q", pattern, text, got, re.FindAllString(text, n))
		}
	})
}
