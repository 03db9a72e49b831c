package lint

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamesInPages looks up the paths and the qualified names in backquotes that pages about the code mention. A path
// must be the end of a path in the repository. Each part of a name must be a word of some source file.
func TestNamesInPages(t *testing.T) {
	paths, words := repositoryNames(t)
	checked := 0
	for _, pattern := range []string{
		"CONTRIBUTING.md", "docs/tour.md", "docs/request.md", "docs/concurrency.md", "docs/schema.md", "docs/design/*.md",
	} {
		pages, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil || len(pages) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(pages), err)
		}
		for _, page := range pages {
			if filepath.Base(page) == "workspaces.md" {
				continue // a plan
			}
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range namesIn(string(text)) {
				checked++
				if !foreignNames[name] && !known(name, paths, words) {
					t.Errorf("%s names `%s`, which does not exist", filepath.ToSlash(page), name)
				}
			}
		}
	}
	if checked < 500 {
		t.Errorf("only %d names found", checked)
	}
}

// foreignNames belong to other projects, or are resources of Kubernetes.
var foreignNames = map[string]bool{
	"net/http": true, "testing/synctest": true, "compress/flate": true, "client-go/pkg/version": true,
	"apiextensions/validation": true, "apps/v1": true, "pods/exec": true, "pods/log": true,
	"TestDefaultStorageEncoding": true,
}

var (
	inCode        = regexp.MustCompile("`[^`\n]+`")
	pathName      = regexp.MustCompile(`^[a-z_][\w-]*(/[\w.-]+)+/?$|^[a-z]\w*\.go$`)
	qualifiedName = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$|^(Test|Benchmark|Fuzz)[A-Z]\w*$`)
)

// namesIn returns the paths and qualified names in the prose of a page.
func namesIn(text string) (names []string) {
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if code {
			continue
		}
		for _, span := range inCode.FindAllString(line, -1) {
			if name := strings.Trim(span, "`"); pathName.MatchString(name) || qualifiedName.MatchString(name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// known reports whether a path or each part of a name exists. Paths that begin outside of the repository's folders, such
// as "pods/exec", are resources or packages of others.
func known(name string, paths, words map[string]bool) bool {
	if pathName.MatchString(name) {
		name = strings.TrimSuffix(name, "/")
		first, _, deep := strings.Cut(name, "/")
		return paths[name] || deep && !paths[first]
	}
	for part := range strings.SplitSeq(name, ".") {
		if !words[part] {
			return false
		}
	}
	return true
}

var word = regexp.MustCompile(`[A-Za-z_]\w*`)

// repositoryNames returns all ends of all paths, and the words of all sources: Go, texts and scripts.
func repositoryNames(t *testing.T) (paths, words map[string]bool) {
	t.Helper()
	paths, words = map[string]bool{}, map[string]bool{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() && rel != "." && (rel == "bin" || d.Name()[0] == '.') {
			return filepath.SkipDir
		}
		for end := rel; ; {
			paths[end] = true
			_, rest, more := strings.Cut(end, "/")
			if !more {
				break
			}
			end = rest
		}
		switch path.Ext(rel) {
		case ".go", ".txt", ".sh", ".tsv":
			text, err := os.ReadFile(name)
			for _, w := range word.FindAll(text, -1) {
				words[string(w)] = true
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths, words
}

func TestNamesIn(t *testing.T) {
	paths := map[string]bool{"verb": true, "internal/verb/create.go": true, "verb/create.go": true, "create.go": true}
	words := map[string]bool{"View": true, "Run": true, "TestView": true}
	text := "`View.Run` `View.Walk` `verb/create.go` `verb/gone.go` `pods/exec` `TestView` `lower` [x](`y z`)\n" +
		"```\n`View.Gone`\n```\n"
	for _, name := range namesIn(text) {
		if want := name != "View.Walk" && name != "verb/gone.go"; known(name, paths, words) != want {
			t.Errorf("%s is known: %t, want %t", name, !want, want)
		}
	}
	if n := len(namesIn(text)); n != 6 {
		t.Errorf("%d names, want 6", n)
	}
}
