package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/bowsprit/bowsprit"

// file is one Go file of the root module.
type file struct {
	path    string // from the module's root, with slashes
	pkg     string // its directory: "." for the root package, "internal/storage/store"
	name    string // name in the package clause
	test    bool
	imports []string
	inits   int // functions named init
	lines   int
	tree    *ast.File // with comments; of a test only its imports
}

// positions belongs to all trees.
var positions = token.NewFileSet()

// sources returns every Go file of the root module, without nested modules, testdata and hidden folders. They are
// parsed once for all tests.
func sources(t *testing.T) []file {
	t.Helper()
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("only %d files found: the rules would hold for nothing", len(files))
	}
	return files
}

var parsed = sync.OnceValues(func() (files []file, err error) {
	root := filepath.Join("..", "..")
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel == "." {
				return nil
			}
			if base := d.Name(); base == "testdata" || base == "bin" || strings.HasPrefix(base, ".") ||
				strings.HasPrefix(base, "_") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		f, err := parse(name, rel)
		if err == nil {
			files = append(files, f)
		}
		return err
	})
	return files, err
})

func parse(name, rel string) (file, error) {
	f := file{path: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go")}
	mode := parser.SkipObjectResolution | parser.ParseComments
	if f.test {
		mode |= parser.ImportsOnly
	}
	tree, err := parser.ParseFile(positions, name, nil, mode)
	if err != nil {
		return f, err
	}
	f.name, f.tree, f.lines = tree.Name.Name, tree, positions.File(tree.FileStart).LineCount()
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return f, err
		}
		f.imports = append(f.imports, imported)
	}
	for _, decl := range tree.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			f.inits++
		}
	}
	return f, nil
}

// within reports whether an import path is p or lies below it.
func within(imported, p string) bool {
	return imported == p || strings.HasPrefix(imported, p+"/")
}
