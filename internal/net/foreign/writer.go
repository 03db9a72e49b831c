package foreign

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Writer returns a writer for a terminal. It escapes control characters other than a line feed and a tab, and the
// Unicode characters that change the direction of text, by which one name can look like another. Everything else is
// written unchanged. An incomplete rune waits for its last bytes in a later call of Write.
func Writer(to io.Writer) io.Writer { return &writer{to: to} }

type writer struct {
	to   io.Writer
	part []byte // of a rune
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	text := append(w.part, p...)
	w.part = nil
	if n := unfinished(text); n > 0 {
		w.part, text = append([]byte(nil), text[len(text)-n:]...), text[:len(text)-n]
	}
	var b strings.Builder
	for rest := string(text); rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if harmful(r) {
			b.WriteString(Cut(rest[:size], 4*size+8))
		} else {
			b.WriteString(rest[:size])
		}
		rest = rest[size:]
	}
	if _, err := io.WriteString(w.to, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Unwrap returns the underlying writer, for a caller that checks for a terminal.
func (w *writer) Unwrap() io.Writer { return w.to }

// harmful reports whether a terminal interprets a rune as a command. utf8.RuneError stands for a byte that is not
// UTF-8: some of these bytes are commands to a terminal with another encoding.
func harmful(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u2028', '\u2029', utf8.RuneError:
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// unfinished returns the number of bytes at the end of text that begin an incomplete rune.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if at := text[len(text)-n:]; utf8.RuneStart(at[0]) {
			if utf8.FullRune(at) {
				return 0
			}
			return n
		}
	}
	return 0
}
