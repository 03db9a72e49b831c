package foreign

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Every rune by itself and every byte: a terminal receives no command, and text that is none arrives as it is.
func TestWriter(t *testing.T) {
	t.Parallel()
	write := func(pieces ...string) string {
		var b bytes.Buffer
		w := Writer(&b)
		for _, piece := range pieces {
			if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatalf("%q: %d, %v", piece, n, err)
			}
		}
		return b.String()
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || r == utf8.RuneError {
			continue
		}
		in := "a" + string(r) + "b"
		out := write(in)
		command := r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) ||
			unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
		if escaped := strings.HasPrefix(out, `a\`) && r != '\\'; escaped != command || !command && out != in {
			t.Fatalf("%U is written as %q", r, out)
		}
	}
	for b := range 256 {
		if out := write("a" + string([]byte{byte(b)}) + "b"); !utf8.ValidString(out) {
			t.Fatalf("byte %#x is written as %q", b, out)
		}
	}
	for _, text := range []string{"größe", "日本語", "🚢 ahoy"} {
		if out := write(strings.Split(text, "")...); out != text {
			t.Errorf("%q by runes is %q", text, out)
		}
		var bytes []string
		for i := range len(text) {
			bytes = append(bytes, text[i:i+1])
		}
		if out := write(bytes...); out != text {
			t.Errorf("%q by bytes is %q", text, out)
		}
	}
}
