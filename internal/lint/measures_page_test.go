package lint

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	measuresPage  = "../../docs/house.md"
	measuresBegin = "<!-- measures: go test ./internal/lint -run TestMeasuresPage -update -->\n"
	measuresEnd   = "<!-- end of measures -->\n"
)

// row is one measure of docs/house.md.
type row struct {
	measure string
	before  string // at commit a31ddc8
	now     string
	wanted  string
}

// TestMeasuresPage compares the table of docs/house.md with the code. Figures have two digits, so that the table does
// not change with each commit. -update writes it.
func TestMeasuresPage(t *testing.T) {
	var table bytes.Buffer
	fmt.Fprintf(&table, "| measure | a31ddc8 | now | wanted |\n|---|---:|---:|---:|\n")
	for _, r := range slices.Concat(languageRows(t), codeRows(t), pageRows(t)) {
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", r.measure, r.before, r.now, r.wanted)
	}
	t.Logf("\n%s", table.String())
	page, err := os.ReadFile(filepath.FromSlash(measuresPage))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := bytes.Cut(page, []byte(measuresBegin))
	old, after, ends := bytes.Cut(rest, []byte(measuresEnd))
	if !begins || !ends {
		t.Fatalf("%s has no table between %q and %q", measuresPage, measuresBegin, measuresEnd)
	}
	if bytes.Equal(bytes.TrimSpace(old), bytes.TrimSpace(table.Bytes())) {
		return
	}
	if !*updateLanguage {
		t.Fatalf("the table of %s is stale; run: go test ./internal/lint -run TestMeasuresPage -update", measuresPage)
	}
	text := slices.Concat(before, []byte(measuresBegin), []byte("\n"), table.Bytes(), []byte("\n"),
		[]byte(measuresEnd), after)
	if err := os.WriteFile(filepath.FromSlash(measuresPage), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// languageRows count the words of the dialect in comments, pages and texts.
func languageRows(t *testing.T) []row {
	var comments, pages, texts prose
	for name, p := range languageRooms(t) {
		into := &comments
		switch {
		case strings.HasSuffix(name, ".md"):
			into = &pages
		case strings.HasPrefix(name, "texts:"):
			into = &texts
		}
		into.words, into.whats, into.those = into.words+p.words, into.whats+p.whats, into.those+p.those
	}
	per := func(n int, p prose) string { return fmt.Sprintf("%.1f", 1000*float64(n)/float64(p.words)) }
	return []row{
		{`"what" in 1,000 words of comments`, "15.5", per(comments.whats, comments), "2"},
		{`"those" in 1,000 words of comments`, "4.1", per(comments.those, comments), "0.5"},
		{`"what" in 1,000 words of pages`, "9.6", per(pages.whats, pages), "2"},
		{`"what" in 1,000 words of help, logs and errors`, "not counted", per(texts.whats, texts), "2"},
	}
}

// codeRows count lines, packages and methods.
func codeRows(t *testing.T) []row {
	m := measure(t)
	files, kinds, features, examples := 0, 0, 0, 0
	imports, floors := map[string]bool{}, map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			examples += examplesIn(t, f)
			continue
		}
		switch {
		case f.pkg == ".":
			files++
			for _, i := range f.imports {
				if strings.HasPrefix(i, module) {
					imports[i] = true
				}
			}
		case strings.HasPrefix(f.pkg, "internal/kinds/"):
			kinds += f.lines
		case strings.HasPrefix(f.pkg, "internal/feature/"):
			features += f.lines
		}
		if rest, ok := strings.CutPrefix(f.pkg, "internal/"); ok {
			floor, _, _ := strings.Cut(rest, "/")
			floors[floor] = true
		}
	}
	delete(floors, "testing")
	delete(floors, "lint")
	methods, _ := largest(m.methods)
	lines, room := largest(m.packages)
	return []row{
		{"files of the root package", "43", fmt.Sprint(files), "10"},
		{"lines of the root package", "4,579", twoDigits(m.packages["."]), "a front door"},
		{"our packages that the root package imports", "86", fmt.Sprint(len(imports)), "few"},
		{"methods of one type", "51", fmt.Sprint(methods), fmt.Sprintf("at most %d", maxMethods)},
		{"lines of the largest package", "4,598", twoDigits(lines) + " (`" + room + "`)", "4,000"},
		{"lines of `kinds`, which is data", "45,500", twoDigits(kinds), "23,000"},
		{"lines of `feature`, which is behaviour", "in `kinds`", twoDigits(features), "-"},
		{"entries of `internal`, without tests and lint", "16", fmt.Sprint(len(floors)), fmt.Sprint(maxFloors)},
		{"runnable examples", "2", fmt.Sprint(examples), "20"},
	}
}

// examplesIn counts the functions of a test file that run as examples of the public packages.
func examplesIn(t *testing.T, f file) int {
	t.Helper()
	if strings.HasPrefix(f.pkg, "internal/") || strings.HasPrefix(f.pkg, "test/") {
		return 0
	}
	text, err := os.ReadFile(filepath.FromSlash("../../" + f.path))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\nfunc Example"))
}

// pageRows count the sizes of pages and scripts.
func pageRows(t *testing.T) []row {
	size := func(name string) (bytes, lines int) {
		text, err := os.ReadFile(filepath.FromSlash("../../" + name))
		if err != nil {
			t.Fatal(err)
		}
		return len(text), strings.Count(string(text), "\n")
	}
	scripts := 0
	names, err := filepath.Glob(filepath.FromSlash("../../test/wire/testdata/*.txt"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%d scripts, %v", len(names), err)
	}
	for _, name := range names {
		_, lines := size(filepath.ToSlash(strings.TrimPrefix(name, filepath.FromSlash("../../"))))
		scripts += lines
	}
	changelog, _ := size("CHANGELOG.md")
	_, request := size("docs/request.md")
	return []row{
		{"lines of scripts in `test/wire`", "648", twoDigits(scripts), "more"},
		{"lines of `docs/request.md`, the map", "418", fmt.Sprint(request / 10 * 10), "a screen for each story"},
		{"kilobytes of the changelog", "60", fmt.Sprint((changelog + 999) / 1000), "8"},
	}
}

// largest returns the largest number of m, and its name.
func largest(m map[string]int) (n int, name string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if m[k] > n {
			n, name = m[k], k
		}
	}
	return n, name
}

// twoDigits rounds a number to two digits, with a comma at thousands.
func twoDigits(n int) string {
	if unit := int(math.Pow10(len(fmt.Sprint(n)) - 2)); unit > 1 {
		n = (n + unit/2) / unit * unit
	}
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
