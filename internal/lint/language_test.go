package lint

import (
	"bytes"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Comments and pages use nouns and active verbs. A clause that begins with "what", "those" or "whose" usually hides
// one. TestLanguage counts these words in rooms: each page, the comments of each package, its texts (string literals of
// four words and more outside of tests, such as help, log lines and errors), and the comments of the scripts, manifests
// and Makefile of each folder. Each room may have as many for its length as goal allows. testdata/language.txt lists
// exceptions with their numbers, which only fall.
//
// After a move of code or comments between packages, -update counts all rooms again. It never raises the total.
var updateLanguage = flag.Bool("update", false, "count the rooms of testdata/language.txt again")

const (
	languageFile = "testdata/language.txt"
	moved        = "after a move of code, run: go test ./internal/lint -run TestLanguage -update"
)

// goal is how many occurrences of each sort 1,000 words may have.
var goal = struct{ whats, those, other float64 }{whats: 2, those: 0.5, other: 1}

// Words of the dialect. The third row counts for other.
var (
	whatWord  = regexp.MustCompile(`(?i)\bwhat\b`)
	thoseWord = regexp.MustCompile(`(?i)\bthose\b`)
	otherWord = regexp.MustCompile(`(?i)\bwhose\b|\bof which\b|\bthat which\b|\bthe thing that\b|` +
		`\bit is(?: [a-z]+){1,5} that\b`)
)

// prose counts the words of one room.
type prose struct {
	words, whats, those, other int
}

func (p *prose) add(text string) {
	fields := strings.Fields(text)
	p.words += len(fields)
	text = strings.Join(fields, " ")
	p.whats += len(whatWord.FindAllString(text, -1))
	p.those += len(thoseWord.FindAllString(text, -1))
	p.other += len(otherWord.FindAllString(text, -1))
}

func (p *prose) dialect() int { return p.whats + p.those + p.other }

// allowed returns the occurrences that goal allows for the length of p: at least one of each sort.
func (p *prose) allowed() prose {
	thousands := float64(p.words) / 1000
	up := func(rate float64) int { return max(1, int(math.Ceil(rate*thousands))) }
	return prose{whats: up(goal.whats), those: up(goal.those), other: up(goal.other)}
}

// within reports whether p has at most as many occurrences of each sort as most.
func (p *prose) within(most prose) bool {
	return p.whats <= most.whats && p.those <= most.those && p.other <= most.other
}

func TestLanguage(t *testing.T) {
	rooms := languageRooms(t)
	limits, most := languageLimits(t)
	total := 0
	for _, p := range rooms {
		total += p.dialect()
	}
	if *updateLanguage {
		if total > most {
			t.Fatalf("%d words of the dialect, %d before: rewrite the new ones first", total, most)
		}
		writeLanguageLimits(t, rooms, total)
		limits, _ = languageLimits(t)
	}
	for name := range limits {
		if rooms[name] == nil {
			t.Errorf("%s lists %s, which does not exist; %s", languageFile, name, moved)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		p, limit := rooms[name], rooms[name].allowed()
		if own, ok := limits[name]; ok {
			limit.whats, limit.those = max(limit.whats, own.whats), max(limit.those, own.those)
			limit.other = max(limit.other, own.other)
		}
		if per := 1000 / float64(max(p.words, 1)); testing.Verbose() {
			t.Logf("%-60s %6d words, for 1,000: %5.1f what %5.1f those %5.1f other", name, p.words,
				float64(p.whats)*per, float64(p.those)*per, float64(p.other)*per)
		}
		if !p.within(limit) {
			t.Errorf("%s has %d what, %d those, %d other; it may have %d, %d, %d. Name the subject instead; %s",
				name, p.whats, p.those, p.other, limit.whats, limit.those, limit.other, moved)
		}
	}
	t.Logf("%d rooms, %d above the goal, %d words of the dialect (at most %d)", len(rooms), len(limits), total, most)
}

// languageRooms reads all pages, the comments and texts of all Go files, and the comments of all scripts and manifests,
// of the other modules too.
func languageRooms(t *testing.T) map[string]*prose {
	t.Helper()
	rooms := map[string]*prose{}
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
		if d.IsDir() {
			if base := d.Name(); base == "testdata" || base == "bin" || rel != "." && rel != ".ci" && base[0] == '.' {
				return filepath.SkipDir
			}
			return nil
		}
		add := func(room, text string) {
			if rooms[room] == nil {
				rooms[room] = new(prose)
			}
			rooms[room].add(text)
		}
		switch path.Ext(rel) {
		case ".md":
			text, err := pageProse(name)
			add(rel, text)
			return err
		case ".go":
			comments, texts, err := sourceProse(name)
			add(path.Dir(rel), comments)
			if texts != "" && !strings.HasSuffix(rel, "_test.go") {
				add("texts:"+path.Dir(rel), texts)
			}
			return err
		}
		if isScript(rel) {
			text, err := os.ReadFile(name)
			add("scripts:"+path.Dir(rel), scriptProse(string(text)))
			return err
		}
		return nil
	})
	if err != nil || len(rooms) < 200 {
		t.Fatalf("%d rooms, %v", len(rooms), err)
	}
	return rooms
}

// pageProse returns a page without its code.
func pageProse(name string) (string, error) {
	text, err := os.ReadFile(name)
	return linkTargets.ReplaceAllString(withoutCode(string(text)), "]"), err
}

var linkTargets = regexp.MustCompile(`\]\([^)]*\)`)

// sourceProse returns the comments of a file without their code, and its string literals of at least four words.
// Generated files have none.
func sourceProse(name string) (comments, texts string, err error) {
	src, err := os.ReadFile(name)
	if err != nil || bytes.HasPrefix(src, []byte("// Code generated")) {
		return "", "", err
	}
	file := token.NewFileSet().AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	var c, l strings.Builder
	for {
		switch _, tok, lit := s.Scan(); tok {
		case token.EOF:
			return c.String(), l.String(), nil
		case token.COMMENT:
			if !strings.HasPrefix(lit, "//\t") && !directive.MatchString(lit) {
				c.WriteString(strings.TrimSuffix(strings.TrimLeft(lit, "/*"), "*/") + "\n")
			}
		case token.STRING:
			if text, err := strconv.Unquote(lit); err == nil && len(strings.Fields(text)) >= 4 {
				l.WriteString(text + "\n")
			}
		}
	}
}

// isScript reports whether a file has comments that begin with "#".
func isScript(rel string) bool {
	switch path.Ext(rel) {
	case ".sh", ".yaml", ".yml", ".tpl", ".service":
		return true
	}
	return path.Base(rel) == "Makefile" || path.Dir(rel) == ".ci"
}

// scriptProse returns the comments of a script, a manifest or a Makefile, with the help of its targets.
func scriptProse(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if m := scriptComment.FindStringSubmatch(line); m != nil {
			b.WriteString(m[1] + "\n")
		}
	}
	return b.String()
}

var scriptComment = regexp.MustCompile(`(?:^|\s)##? (.*)`)

var directive = regexp.MustCompile(`^//[a-z]+:`)

// languageLimits reads testdata/language.txt: the limits of rooms, and the total of all rooms.
func languageLimits(t *testing.T) (map[string]prose, int) {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(languageFile))
	if err != nil {
		t.Fatal(err)
	}
	limits, total := map[string]prose{}, 0
	for line := range strings.Lines(string(text)) {
		var name string
		var p prose
		switch fields := strings.Fields(line); {
		case len(fields) == 0 || fields[0] == "#":
		case fields[0] == "total":
			_, err = fmt.Sscan(fields[1], &total)
		default:
			_, err = fmt.Sscan(line, &name, &p.whats, &p.those, &p.other)
			limits[name] = p
		}
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	return limits, total
}

func writeLanguageLimits(t *testing.T, rooms map[string]*prose, total int) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "# Pages and packages above the goal of TestLanguage, and how many words each may have.\n"+
		"# %-58s %5s %5s %5s\ntotal %d\n", "room", "what", "those", "other", total)
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		if p := rooms[name]; !p.within(p.allowed()) {
			fmt.Fprintf(&b, "%-60s %5d %5d %5d\n", name, p.whats, p.those, p.other)
		}
	}
	if err := os.WriteFile(filepath.FromSlash(languageFile), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestProseOf(t *testing.T) {
	for text, want := range map[string]prose{
		"What is whatever":                                      {words: 3, whats: 1},
		"Those that thoserest":                                  {words: 3, those: 1},
		"a pod whose node, of which none; that which is":        {words: 10, other: 3},
		"it is the server that decides; it is refused, so that": {words: 11, other: 1},
	} {
		var p prose
		if p.add(text); p != want {
			t.Errorf("%q: %+v, want %+v", text, p, want)
		}
	}
	script := "#!/bin/sh\n# first\nrun a#b # second\nunit: test ## third\n"
	if got, want := scriptProse(script), "first\nsecond\nthird\n"; got != want {
		t.Errorf("comments %q, want %q", got, want)
	}
	long := prose{words: 2000, whats: 4, those: 1, other: 2}
	more := prose{words: 2000, whats: 5}
	short := prose{words: 10, whats: 1, those: 1, other: 1}
	if !long.within(long.allowed()) || more.within(more.allowed()) || !short.within(short.allowed()) {
		t.Error("wrong limits")
	}
}
