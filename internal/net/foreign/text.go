// Package foreign bounds the responses of other programs: the bytes of a body, the bytes of its headers, and the parts
// that errors, logs and Statuses repeat.
//
// Every client in this module that reads a response of a webhook, a token issuer, an aggregated server, a plugin, a
// proxy or a peer uses these bounds. The package is at the lowest level and imports nothing of the module. All its
// functions are safe for concurrent use.
package foreign

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is the number of bytes of a foreign text that an error or a log line repeats, Kubernetes' own figure for the
// bodies of failed requests.
const MaxText = 2048

// Text returns a foreign text for an error or a log line: at most MaxText bytes of it, control characters and invalid
// UTF-8 escaped as in Go, and the total length if it was shortened. A short line of printable text is unchanged.
func Text(s string) string { return Cut(s, MaxText) }

// Clip returns at most the given number of bytes of a text, whole runes, and the total length if it was shortened. It
// changes nothing else: the text may have several lines, such as a webhook's explanation in a Status.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return fmt.Sprintf("%s... (%d bytes in all)", s[:most], len(s))
}

// Cut is Text with another bound. The result is longer than the bound by the note about the length only.
func Cut(s string, most int) string {
	if len(s) <= most && plain(s) {
		return s
	}
	var b strings.Builder
	rest := s
	for rest != "" {
		r, size := utf8.DecodeRuneInString(rest)
		piece := rest[:size]
		if !printable(r, size) {
			quoted := strconv.QuoteToASCII(piece)
			piece = quoted[1 : len(quoted)-1]
		}
		if b.Len()+len(piece) > most {
			fmt.Fprintf(&b, "... (%d bytes in all)", len(s))
			break
		}
		b.WriteString(piece)
		rest = rest[size:]
	}
	return b.String()
}

// plain reports whether every rune of s is printable.
func plain(s string) bool {
	for i, r := range s {
		if size := utf8.RuneLen(r); !printable(r, size) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return false
		}
	}
	return true
}

// printable reports whether a terminal and a log line show the rune as text. size is 1 for a byte that is not UTF-8.
func printable(r rune, size int) bool {
	return unicode.IsPrint(r) && (r != utf8.RuneError || size > 1)
}

// Error returns an error with the text of err, bounded as Text bounds it. errors.Is and errors.As still find err. It
// returns err itself if its text needs no change, and nil for nil.
func Error(err error) error {
	if err == nil {
		return nil
	}
	full := err.Error()
	if len(full) <= MaxText && plain(full) {
		return err
	}
	return &failure{text: Text(full), cause: err}
}

// failure is an error with a bounded text.
type failure struct {
	text  string
	cause error
}

// Error implements error.
func (f *failure) Error() string { return f.text }

// Unwrap returns the error with the whole text.
func (f *failure) Unwrap() error { return f.cause }
