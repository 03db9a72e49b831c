package main

import (
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// root is the path of the modules whose packages foreign.txt lists.
const root = "github.com/bowsprit/bowsprit/"

//go:embed foreign.txt
var foreignText string

// foreign is a line of foreign.txt: the tests of a package that run another project's program.
type foreign struct {
	pkg   string // import path
	tests *regexp.Regexp
}

// parse reads lines of a package below root, a regular expression of its tests, and the program.
func parse(text string) ([]foreign, error) {
	var list []foreign
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) < 3 {
			return nil, fmt.Errorf("%q: expected a package, its tests and the other project's program", line)
		}
		tests, err := regexp.Compile("^(" + fields[1] + ")$")
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		list = append(list, foreign{root + fields[0], tests})
	}
	return list, nil
}

// unlisted returns the failures that must not be repeated. The death of a process may be repeated if any test of the
// package is listed, because no test is known to have caused it.
func (f failures) unlisted(list []foreign) (names []string) {
	for _, name := range f.names() {
		pkg, test, _ := strings.Cut(name, " ")
		if !slices.ContainsFunc(list, func(l foreign) bool {
			return l.pkg == pkg && (test == "" || l.tests.MatchString(test))
		}) {
			names = append(names, name)
		}
	}
	return names
}

// names returns "package test" for each failed test, and "package" for a package that failed without one or died.
func (f failures) names() (names []string) {
	for _, p := range f.packages {
		if f.died[p] || len(f.tests[p]) == 0 {
			names = append(names, p)
			continue
		}
		for _, test := range f.tests[p] {
			names = append(names, p+" "+test)
		}
	}
	return names
}

// remember appends names to the record of earlier FLAKY results and returns the ones that it already had. A line is a
// name and a date. Without a file nothing is remembered.
func remember(file string, names []string) (before []string, err error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file) // #nosec G304 -- the Makefile names it
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var added strings.Builder
	for _, name := range names {
		if strings.Contains("\n"+string(text), "\n"+name+"\t") {
			before = append(before, name)
			continue
		}
		fmt.Fprintf(&added, "%s\t%s\n", name, time.Now().Format(time.DateOnly))
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // #nosec G304 -- the Makefile names it
	if err != nil {
		return nil, err
	}
	if _, err := out.WriteString(added.String()); err != nil {
		_ = out.Close()
		return nil, err
	}
	return before, out.Close()
}
