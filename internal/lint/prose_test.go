package lint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProse holds the Markdown of the repository to maxColumns: all but tables, code and lines of a single word or
// link.
func TestProse(t *testing.T) {
	root := filepath.Join("..", "..")
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 10 {
		t.Fatalf("only %d pages found", len(pages))
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range longProse(string(text)) {
			t.Errorf("%s:%d: longer than %d columns", filepath.ToSlash(page), line, maxColumns)
		}
	}
}

// longProse returns the numbers of the lines of Markdown that are too long and could be broken.
func longProse(text string) (long []int) {
	code := false
	for i, line := range strings.Split(text, "\n") {
		words := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(words, "```"):
			code = !code
		case code, strings.HasPrefix(words, "|"), strings.HasPrefix(words, "#"):
		case columns(line) > maxColumns && strings.Contains(strings.TrimLeft(words, "-*0123456789. "), " "):
			long = append(long, i+1)
		}
	}
	return long
}

func TestLongProse(t *testing.T) {
	words := strings.Repeat("word ", 30)
	for text, want := range map[string]int{
		words: 1, "- " + words: 1, "| " + words: 0, "```\n" + words + "\n```": 0, strings.Repeat("x", 200): 0,
		"short": 0,
	} {
		if got := len(longProse(text)); got != want {
			t.Errorf("%.20q: %d lines, want %d", text, got, want)
		}
	}
}
