package openapi

import (
	"bytes"
	"compress/gzip"
	"hash/crc32"
	"io"
	"strings"
	"testing"
)

func TestCombineCRC(t *testing.T) {
	text := []byte(strings.Repeat("some text, and more of it; ", 400))
	for _, cut := range []int{0, 1, 2, 7, 100, 4096, len(text) - 1, len(text)} {
		a, b := text[:cut], text[cut:]
		if got, want := combineCRC(crc32.ChecksumIEEE(a), crc32.ChecksumIEEE(b), int64(len(b))),
			crc32.ChecksumIEEE(text); got != want {
			t.Errorf("cut at %d: %x, want %x", cut, got, want)
		}
	}
}

func TestParts(t *testing.T) {
	var want strings.Builder
	pieces := []string{"{", "", strings.Repeat(`"a":"b",`, 20000), "x", strings.Repeat("\x00\xff", 70000), "}"}
	for _, gzipped := range []bool{false, true} {
		want.Reset()
		var b bytes.Buffer
		w := newPartsWriter(&b, gzipped)
		for i, piece := range pieces {
			want.WriteString(piece)
			if i%2 == 0 {
				w.part(newPart([]byte(piece)))
			} else if _, err := io.WriteString(w, piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var in io.Reader = &b
		if gzipped {
			z, err := gzip.NewReader(&b)
			if err != nil {
				t.Fatal(err)
			}
			z.Multistream(false) // some clients read only one member
			in = z
		}
		got, err := io.ReadAll(in)
		if err != nil || string(got) != want.String() || b.Len() > 0 {
			t.Errorf("gzipped %v: %d bytes, want %d, %d left, %v", gzipped, len(got), want.Len(), b.Len(), err)
		}
	}
}
