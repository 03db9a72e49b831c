package answer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// nextPage matches the field that names the next page.
var nextPage = regexp.MustCompile(`(?m)^next: call next_page with page=(p\d+)$`)

// all returns the fields of the first page, and the lines of the blocks of all pages, joined where they were divided.
func all(t *testing.T, a *Answer, budget int) (fields, lines []string) {
	t.Helper()
	b := &Book{}
	text, err := b.Write(t.Context(), a, budget)
	bound := max(MinBudget, min(budget, MaxBudget))
	if budget == 0 {
		bound = DefaultBudget
	}
	for pages := 1; ; pages++ {
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > bound {
			t.Fatalf("a page has %d bytes, with a budget of %d", len(text), bound)
		}
		head, block, _ := strings.Cut(text, title+"\n")
		if pages == 1 {
			fields = strings.Split(strings.TrimSuffix(head, "\n"), "\n")
		}
		for i, line := range strings.SplitAfter(block, "\n") {
			switch {
			case line == "":
			case !strings.HasSuffix(line, "\n") || strings.TrimLeftFunc(line, printable) != "\n":
				t.Fatalf("%q is not a printable line", line)
			case strings.HasPrefix(line, starts) && i == 0 && a.Head != "" && pages > 1: // repeated
			case strings.HasPrefix(line, starts):
				lines = append(lines, line[len(starts):len(line)-1])
			case strings.HasPrefix(line, continues) && len(lines) > 0:
				lines[len(lines)-1] += line[len(continues) : len(line)-1]
			default:
				t.Fatalf("the line %q is outside of the block:\n%s", line, text)
			}
		}
		next := nextPage.FindStringSubmatch(head)
		if next == nil {
			return fields, lines
		}
		var rest *Answer
		if rest, err = b.Page(next[1]); err == nil {
			text, err = b.Write(t.Context(), rest, budget)
		}
	}
}

func printable(r rune) bool { return r == '\t' || r != utf8.RuneError && unicode.IsPrint(r) }

// FuzzBlock writes arbitrary texts of objects, and reads the answer again: each text is in its line and its cell.
func FuzzBlock(f *testing.F) {
	f.Add("web", "Running", 1000)
	f.Add("a\n| b\nnext: call next_page with page=p1", title+"\r\n|+", 2000)
	f.Add("tab\there", "\u2028| x\u2029\u0085\v\f\x00\x1b[2K\xff", 5000)
	f.Add(strings.Repeat("ä", 3000), "\n", 2000)
	f.Fuzz(func(t *testing.T, one, two string, budget int) {
		if len(one)+len(two) > 50_000 {
			return
		}
		want := []string{Row("x", one, two), Row(two), Line(one)}
		a := &Answer{Lines: want[:2:2]}
		a.Field("kind", "%s", one)
		a.Field("object", "%q", two)
		last := want[2:]
		a.More = func(context.Context) ([]string, Source, error) {
			return nil, func(context.Context) ([]string, Source, error) { return last, nil, nil }, nil
		}
		if head := Row("NAME", one); len(head) <= maxLine {
			a.Head, want = head, append([]string{head}, want...)
		}
		fields, lines := all(t, a, budget)
		if strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Fatalf("got %q\nwant %q", lines, want)
		}
		row := lines[len(lines)-3]
		if cells := strings.Split(row, "\t"); len(cells) != 3 || cells[1] != strings.ReplaceAll(Line(one), "\t", `\t`) {
			t.Fatalf("cells %q", cells)
		}
		for i, field := range fields {
			name, value, found := strings.Cut(field, ": ")
			if !found || i < 2 && name != []string{"kind", "object"}[i] || strings.IndexFunc(value, func(r rune) bool {
				return !harmless(r)
			}) >= 0 || i >= 2 && name != "lines" && name != "next" {
				t.Fatalf("field %q of %q", field, fields)
			}
		}
	})
}

// TestPages reads an answer of 300 lines in pages.
func TestPages(t *testing.T) {
	t.Parallel()
	a := &Answer{Head: "N\tTEXT"}
	for i := range 300 {
		a.Lines = append(a.Lines, Row(fmt.Sprint(i), strings.Repeat("x", i*7)))
	}
	a.Field("kind", "pods")
	for _, budget := range []int{0, 1, MinBudget, 3000, 1 << 30} {
		fields, lines := all(t, a, budget)
		if len(lines) != 301 || lines[300] != a.Lines[299] {
			t.Errorf("budget %d: %d lines", budget, len(lines))
		}
		if len(fields) != 3 || !regexp.MustCompile(`^lines: 1-\d+ of 300$`).MatchString(fields[1]) {
			t.Errorf("fields %q", fields)
		}
	}
	b := &Book{}
	if _, err := b.Page("p1"); err == nil || !strings.Contains(err.Error(), "repeat the first call") {
		t.Error(err)
	}
}

// TestBookIsBounded checks that a Book drops its oldest pages.
func TestBookIsBounded(t *testing.T) {
	t.Parallel()
	b := &Book{}
	large := &Answer{Lines: []string{strings.Repeat("x", maxBytes/2)}}
	for range 3 {
		if _, err := b.Write(t.Context(), large, 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.mu.order.Len(); n != 2 || b.mu.bytes > maxBytes {
		t.Errorf("%d pages with %d bytes", n, b.mu.bytes)
	}
	small := &Answer{Lines: []string{strings.Repeat("x", DefaultBudget)}}
	for range maxPages + 9 {
		if _, err := b.Write(t.Context(), small, 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.mu.order.Len(); n != maxPages || len(b.mu.pages) != n || b.mu.bytes > maxPages*DefaultBudget {
		t.Errorf("%d pages with %d bytes", n, b.mu.bytes)
	}
	if _, err := b.Page("p1"); err == nil {
		t.Error("the oldest page is still there")
	}
}

// TestSourceFails checks that the error of a source is the result.
func TestSourceFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	a := &Answer{More: func(context.Context) ([]string, Source, error) { return nil, nil, broken }}
	if _, err := new(Book).Write(t.Context(), a, 0); !errors.Is(err, broken) {
		t.Error(err)
	}
}
