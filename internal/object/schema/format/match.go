package format

import (
	"io"
	"regexp"
	"unicode/utf8"
)

// quick is the product of size and length up to which a match ends by itself, after about a tenth of a second at most.
const quick = 1 << 23

// Match reports whether a text matches a compiled pattern of a size. It ends early, without a match, if done is closed.
func Match(re *regexp.Regexp, size int, text string, done <-chan struct{}) (matched, ended bool) {
	if done == nil {
		return re.MatchString(text), false
	}
	return NewPattern(re, size).Match(text, func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

// Pattern is a compiled pattern for searches that end early. It is not safe for concurrent use.
type Pattern struct {
	re, after *regexp.Regexp
	size      int
	left      int // work until the next look
}

// NewPattern returns a compiled pattern with its size.
func NewPattern(re *regexp.Regexp, size int) *Pattern {
	return &Pattern{re: re, size: size, left: quick}
}

// Match reports whether the pattern matches in a text. It calls over from time to time, and ends early if that is true.
func (p *Pattern) Match(text string, over func() bool) (matched, ended bool) {
	if p.size*len(text) <= quick {
		return p.re.MatchString(text), false
	}
	r := reader{pattern: p, text: text, over: over}
	matched = p.re.MatchReader(&r)
	return matched && !r.ended, r.ended
}

// Find returns the begin and the end of the leftmost match, nil without one. It ends early like Match.
func (p *Pattern) Find(text string, over func() bool) (at []int, ended bool) {
	if p.size*len(text) <= quick {
		return p.re.FindStringIndex(text), false
	}
	return p.find(p.re, text, over)
}

func (p *Pattern) find(re *regexp.Regexp, text string, over func() bool) (at []int, ended bool) {
	r := reader{pattern: p, text: text, over: over}
	at = re.FindReaderIndex(&r)
	if r.ended {
		return nil, true
	}
	return at, false
}

// FindAll returns up to n matches, all if n is negative, like Regexp.FindAllString. It ends early like Match.
func (p *Pattern) FindAll(text string, n int, over func() bool) (found []string, ended bool) {
	if p.size*len(text) <= quick/(1+len(text)/64) { // each match may read the whole text
		return p.re.FindAllString(text, n), false
	}
	if n < 0 {
		n = len(text) + 1
	}
	for at, before := 0, -1; len(found) < n && at <= len(text); {
		match, ended := p.findFrom(text, at, over)
		if ended || match == nil {
			return found, ended
		}
		empty, again := match[1] == at, match[0] == before
		before = match[1]
		if !empty || !again { // an empty match behind another one does not count
			found = append(found, text[match[0]:match[1]])
		}
		at = match[1]
		if empty {
			_, width := utf8.DecodeRuneInString(text[at:])
			at += max(width, 1)
		}
	}
	return found, false
}

// findFrom returns the leftmost match from a position on. The search begins at the rune before it, which assertions
// such as \b need.
func (p *Pattern) findFrom(text string, from int, over func() bool) (at []int, ended bool) {
	if from == 0 {
		return p.find(p.re, text, over)
	}
	if p.after == nil {
		p.after = regexp.MustCompile("(?s:.)(?:" + p.re.String() + ")")
	}
	_, width := utf8.DecodeLastRuneInString(text[:from])
	base := from - width
	at, ended = p.find(p.after, text[base:], over)
	if at == nil {
		return nil, ended
	}
	_, width = utf8.DecodeRuneInString(text[base+at[0]:])
	return []int{base + at[0] + width, base + at[1]}, false
}

// reader reads a text until over returns true.
type reader struct {
	pattern *Pattern
	text    string
	over    func() bool
	ended   bool
}

// ReadRune implements io.RuneReader.
func (r *reader) ReadRune() (rune, int, error) {
	if p := r.pattern; p.left < p.size {
		p.left = quick
		r.ended = r.ended || r.over()
	}
	r.pattern.left -= r.pattern.size
	if r.ended || r.text == "" {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRuneInString(r.text)
	r.text = r.text[n:]
	return c, n, nil
}
