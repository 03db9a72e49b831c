package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var links = regexp.MustCompile(`\]\(([^()\s]+)\)`)

// TestLinks follows the links of all pages: to files of the repository, and to headings in pages.
func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range found {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			pages[page] = string(text)
		}
	}
	followed := 0
	for page, text := range pages {
		for _, link := range links.FindAllStringSubmatch(withoutCode(text), -1) {
			if strings.Contains(link[1], "://") || strings.HasPrefix(link[1], "mailto:") {
				continue
			}
			followed++
			path, anchor, _ := strings.Cut(link[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(path))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", filepath.ToSlash(page), link[1])
			} else if to, isPage := pages[target]; anchor != "" && isPage && !anchors(to)[anchor] {
				t.Errorf("%s links to %s, and that page has no such heading", filepath.ToSlash(page), link[1])
			}
		}
	}
	if followed < 100 {
		t.Errorf("only %d links found", followed)
	}
}

// withoutCode removes blocks of code and text in backquotes, which have no links.
func withoutCode(text string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		} else if !code {
			b.WriteString(inBackquotes.ReplaceAllString(line, ""))
		}
	}
	return b.String()
}

var inBackquotes = regexp.MustCompile("`[^`\n]*`")

// anchors returns the names that GitHub gives to the headings of a page.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if heading := strings.TrimLeft(line, "#"); !code && heading != line && strings.HasPrefix(heading, " ") {
			names[anchor(strings.TrimSpace(heading))] = true
		}
	}
	return names
}

func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, heading)
}

func TestAnchors(t *testing.T) {
	got := anchors("# Why is it *refused*?\n```\n# code\n```\n## A `403`, and more\n#no heading\n")
	if len(got) != 2 || !got["why-is-it-refused"] || !got["a-403-and-more"] {
		t.Error(got)
	}
	if text := withoutCode("[a](b) `[c](d)`\n```\n[e](f)\n```\n"); strings.TrimSpace(text) != "[a](b)" {
		t.Errorf("%q", text)
	}
}
