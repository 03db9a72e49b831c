package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		most     int
		in, want string
	}{
		{10, "", ""},
		{100, "no such host", "no such host"},
		{100, "größer \ufffd", "größer \ufffd"},
		{100, "a\nb\x1b[31m\x00", `a\nb\x1b[31m\x00`},
		{100, "\xff\xfe", `\xff\xfe`},
		{100, "\u202egnp.exe\u2028", `\u202egnp.exe\u2028`},
		{10, "0123456789", "0123456789"},
		{10, "0123456789a", "0123456789... (11 bytes in all)"},
		{10, "\n\n\n\n\n\n", `\n\n\n\n\n... (6 bytes in all)`},
		{10, "123456789ß", "123456789... (11 bytes in all)"},
	} {
		if got := Cut(c.in, c.most); got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.in, c.most, got, c.want)
		}
	}
}

// FuzzText holds that a text of any bytes is bounded, printable and UTF-8, and that errors keep their causes.
func FuzzText(f *testing.F) {
	f.Add("plain", 100)
	f.Add("\x00\xff\n\u202e", 3)
	f.Add(strings.Repeat(" ", 5000), 2048)
	f.Fuzz(func(t *testing.T, in string, most int) {
		most = max(0, min(most, 5000))
		got := Cut(in, most)
		if len(got) > most+40 || !utf8.ValidString(got) {
			t.Fatalf("%q at %d: %q", in, most, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q: %q is not printable", in, got)
			}
		}
		cause := fmt.Errorf("%s: %w", in, io.ErrUnexpectedEOF)
		if err := Error(cause); !errors.Is(err, io.ErrUnexpectedEOF) || len(err.Error()) > MaxText+40 {
			t.Fatalf("%q: %v", in, err)
		}
	})
}

func TestReadAll(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		data := bytes.Repeat([]byte("x"), random.IntN(3000))
		limit := random.Int64N(3000)
		var from io.Reader = bytes.NewReader(data)
		switch random.IntN(3) {
		case 0:
			from = iotest.OneByteReader(from)
		case 1:
			from = iotest.DataErrReader(from)
		}
		got, err := ReadAll(from, limit)
		var long *TooLong
		switch {
		case int64(len(data)) <= limit && (err != nil || !bytes.Equal(got, data)):
			t.Fatalf("%d bytes of %d: %d bytes, %v", len(data), limit, len(got), err)
		case int64(len(data)) > limit && (!errors.As(err, &long) || int64(len(got)) != limit):
			t.Fatalf("%d bytes of %d: %d bytes, %v", len(data), limit, len(got), err)
		}
	}
}

// TestBounded has a server send more than its client takes, plain and compressed.
func TestBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 1001))
	}))
	defer s.Close()
	for limit, fits := range map[int64]bool{1001: true, 1000: false} {
		resp, err := (&http.Client{Transport: Bounded(http.DefaultTransport, limit)}).Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if (err == nil) != fits || n != min(limit, 1001) {
			t.Errorf("limit %d: %d bytes, %v", limit, n, err)
		}
		_ = resp.Body.Close()
	}
}
