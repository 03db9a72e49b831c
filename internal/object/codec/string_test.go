package codec

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestPlainWord tries every byte at each of eight positions, beside plain bytes.
func TestPlainWord(t *testing.T) {
	t.Parallel()
	for _, neighbour := range []string{"aaaaaaaa", "        ", "~~~~~~~~", "\x7f!#%';=?", "]]]]]]]]"} {
		for at := range 8 {
			for c := range 256 {
				s := neighbour[:at] + string([]byte{byte(c)}) + neighbour[at+1:]
				if got := plainWord(word(s)); got != (c < 0x80 && plain[c]) {
					t.Errorf("%q: %v", s, got)
				}
			}
		}
	}
}

// TestAppendStringIsJSON compares with encoding/json.
func TestAppendStringIsJSON(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	parts := []string{
		"a", "plain text of many bytes", "\"", "\\", "<", ">", "&", "\n", "\t", "\x00", "\x1f", "\x7f", "é", "\u2028",
		"日本", "\xff", "\xc3", "\U0001f600",
	}
	for range 20000 {
		var b strings.Builder
		for range random.IntN(12) {
			b.WriteString(parts[random.IntN(len(parts))])
		}
		want, err := json.Marshal(b.String())
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendString([]byte("x"), b.String()); string(got) != "x"+string(want) {
			t.Fatalf("%q: %s, want %s", b.String(), got, want)
		}
	}
}

func BenchmarkAppendString(b *testing.B) {
	s, room := "/api/v1/namespaces/default/pods/web-5d8f7c9b4-abcde?timeout=30s", make([]byte, 0, 128)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		AppendString(room, s)
	}
}
