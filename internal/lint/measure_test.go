package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The structure of the code in numbers. `go test -v -run TestMeasures ./internal/lint` prints today's numbers;
// docs/house.md has them beside the numbers of the beginning.
const (
	maxColumns       = 120 // of a line; a tab counts as four
	maxFunctionLines = 60  // of a function with logic: not of a test, a table or a list of flags
	maxParameters    = 5
	manyParameters   = 9  // functions that have more
	maxMethods       = 48 // of one type
	maxPackageLines  = 4000
	maxFloors        = 16 // entries of internal, without the tests' own
	maxFloorPackages = 9  // below one of them, kinds, features and simulated components excepted
	maxImportChain   = 13 // two of them are the front door and the list of parts
)

// largePackages are the packages over maxPackageLines, each with its own limit, which may only fall.
var largePackages = map[string]int{"internal/kinds/core": 4450, "internal/object/schema": 4450}

// measures are the results of one run.
type measures struct {
	functions, parameters, methods, packages, documented, bare map[string]int
}

func measure(t *testing.T) measures {
	t.Helper()
	m := measures{
		functions: map[string]int{}, parameters: map[string]int{}, methods: map[string]int{},
		packages:   map[string]int{},
		documented: map[string]int{}, bare: map[string]int{},
	}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		m.packages[f.pkg] += f.lines
		for _, decl := range f.tree.Decls {
			m.count(f.pkg, decl)
		}
	}
	return m
}

func (m measures) count(pkg string, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			receiver := typeName(d.Recv.List[0].Type)
			m.methods[pkg+"."+receiver]++
			name = receiver + "." + name
		}
		if d.Body != nil {
			m.functions[pkg+"."+name] = positions.Position(d.Body.Rbrace).Line - positions.Position(d.Pos()).Line + 1
		}
		m.parameters[pkg+"."+name] = d.Type.Params.NumFields()
		if ast.IsExported(d.Name.Name) && (d.Recv == nil || ast.IsExported(typeName(d.Recv.List[0].Type))) {
			m.exported(pkg, name, d.Doc != nil)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					m.exported(pkg, s.Name.Name, d.Doc != nil || s.Doc != nil || s.Comment != nil)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() {
						m.exported(pkg, name.Name, d.Doc != nil || s.Doc != nil || s.Comment != nil)
					}
				}
			}
		}
	}
}

// exported counts a name that other packages can use. main has none.
func (m measures) exported(pkg, name string, documented bool) {
	if documented {
		m.documented[pkg+"."+name] = 1
	} else {
		m.bare[pkg+"."+name] = 1
	}
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

func TestMeasures(t *testing.T) {
	m := measure(t)
	for _, c := range []struct {
		measure string
		found   map[string]int
		most    int
	}{
		{"lines of a function", m.functions, maxFunctionLines},
		{"methods of a type", m.methods, maxMethods},
		{"lines of a package", m.packages, maxPackageLines},
		{"exported names without a comment", m.bare, 0},
	} {
		largest := ""
		for _, name := range sortedKeys(c.found) {
			n := c.found[name]
			if c.found[largest] < n {
				largest = name
			}
			most := c.most
			if c.most == maxPackageLines && largePackages[name] > 0 {
				if most = largePackages[name]; n <= maxPackageLines {
					t.Errorf("%s has %d lines: remove it from largePackages", name, n)
				}
			}
			if n > most {
				t.Errorf("%s has %d %s, more than %d", name, n, c.measure, most)
			}
		}
		t.Logf("%s: %d counted, at most %d (%s)", c.measure, len(c.found), c.found[largest], largest)
	}
	var wide []string
	for _, name := range sortedKeys(m.parameters) {
		if m.parameters[name] > maxParameters {
			wide = append(wide, name)
		}
	}
	if len(wide) > manyParameters {
		t.Errorf("%d functions have more than %d parameters, more than %d: %s",
			len(wide), maxParameters, manyParameters, strings.Join(wide, ", "))
	}
	t.Logf("%d functions have more than %d parameters", len(wide), maxParameters)
	t.Logf("exported names documented: %d of %d", len(m.documented), len(m.documented)+len(m.bare))
}

func sortedKeys(m map[string]int) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// implementations are packages that implement an interface of the package above them, and count as a part of it.
var implementations = map[string]string{
	"internal/storage/store/embedded": "store.Backend",
	"internal/storage/store/external": "store.Backend",
	"internal/storage/store/memory":   "store.Backend",
}

// TestFloors counts the entries of internal and the packages below each. Kubernetes decides how many kinds, features
// and simulated components there are. Packages for tests are not part of the program. A corner of another package
// (ownCorners) counts as a part of it.
func TestFloors(t *testing.T) {
	floors := map[string]map[string]bool{}
	for _, f := range sources(t) {
		if rest, ok := strings.CutPrefix(f.pkg, "internal/"); ok && !f.test {
			floor, _, _ := strings.Cut(rest, "/")
			if floor == "testing" || floor == "lint" {
				continue
			}
			if floors[floor] == nil {
				floors[floor] = map[string]bool{}
			}
			if implementations[f.pkg] == "" && ownCorners[f.pkg] == "" {
				floors[floor][f.pkg] = true
			}
		}
	}
	packages := 0
	for floor, pkgs := range floors {
		packages += len(pkgs)
		many := slices.Contains([]string{"kinds", "feature", "workload"}, floor)
		if len(pkgs) > maxFloorPackages && !many {
			t.Errorf("internal/%s has %d packages, more than %d", floor, len(pkgs), maxFloorPackages)
		}
	}
	if len(floors) > maxFloors {
		t.Errorf("%d floors below internal, more than %d: put the new one on one of them", len(floors), maxFloors)
	}
	t.Logf("%d floors with %d packages", len(floors), packages)
}

// TestImportChain measures the longest way down from a command to a package that imports none of ours.
func TestImportChain(t *testing.T) {
	imports := map[string][]string{}
	for _, f := range sources(t) {
		if f.test || strings.HasPrefix(f.pkg, "internal/testing/") || strings.HasPrefix(f.pkg, "examples/") ||
			strings.HasPrefix(f.pkg, "test/") {
			continue // they stand on the whole server
		}
		for _, imported := range f.imports {
			if pkg, ok := local(imported); ok {
				imports[f.pkg] = append(imports[f.pkg], pkg)
			}
		}
	}
	longest := map[string][]string{}
	var chain func(pkg string) []string
	chain = func(pkg string) []string {
		if c, ok := longest[pkg]; ok {
			return c
		}
		var below []string
		for _, imported := range imports[pkg] {
			if c := chain(imported); len(c) > len(below) {
				below = c
			}
		}
		longest[pkg] = append([]string{pkg}, below...)
		return longest[pkg]
	}
	var most []string
	for pkg := range imports {
		if c := chain(pkg); len(c) > len(most) {
			most = c
		}
	}
	if len(most)-1 > maxImportChain {
		t.Errorf("%d imports in a row, more than %d: %s", len(most)-1, maxImportChain, strings.Join(most, " > "))
	}
	t.Logf("%d imports in a row: %s", len(most)-1, strings.Join(most, " > "))
}

// TestColumns holds all Go files of all modules to maxColumns. A line may be longer if a string literal, a directive
// or a single word keeps it from being broken.
func TestColumns(t *testing.T) {
	files := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(name string, d fs.DirEntry, err error) error {
		switch base := filepath.Base(name); {
		case err != nil:
			return err
		case d.IsDir() &&
			(base == "generated" || base == "testdata" || base == "bin" || len(base) > 2 && base[0] == '.'):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil || bytes.HasPrefix(src, []byte("// Code generated")) {
			return err
		}
		files++
		for _, line := range overlong(src) {
			t.Errorf("%s:%d: longer than %d columns", filepath.ToSlash(name), line, maxColumns)
		}
		return nil
	})
	if err != nil || files < 300 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// overlong returns the numbers of the lines that are too long and could be broken.
func overlong(src []byte) []int {
	long := map[int]bool{}
	for i, line := range strings.Split(string(src), "\n") {
		if columns(line) > maxColumns && !strings.Contains(line, "//go:") && !strings.Contains(line, "// +") {
			long[i+1] = true
		}
	}
	if len(long) == 0 {
		return nil
	}
	file := token.NewFileSet().AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		first := file.Position(pos)
		last := first.Line + strings.Count(lit, "\n")
		// Literals and names that are long themselves, and all that lies inside of a raw string.
		if tok == token.STRING || tok == token.IDENT && len(lit) > maxColumns/3 {
			for line := first.Line; line <= last; line++ {
				if last > first.Line || len(lit) > maxColumns/4 {
					delete(long, line)
				}
			}
		}
	}
	var lines []int
	for line := range long {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func columns(line string) int { return len([]rune(line)) + 3*strings.Count(line, "\t") }

func TestOverlong(t *testing.T) {
	wide := strings.Repeat("x, ", 50)
	for src, want := range map[string]string{
		"package p\n// " + wide:                            "[2]",
		"package p\nvar " + wide + "y int":                 "[2]",
		"package p\nvar x = `" + wide + "`":                "[]",
		"package p\nvar x = `\n" + wide + "\n`":            "[]",
		"package p\n//go:linkname " + wide:                 "[]",
		"package p\nvar x = f(\"short\", " + wide + "y)\n": "[2]",
	} {
		if got := fmt.Sprint(overlong([]byte(src))); got != want {
			t.Errorf("%q: %s, want %s", src, got, want)
		}
	}
}
