package lint

import (
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamesInPages looks up the paths and the qualified names in backquotes that pages about the code mention. A path
// must be the end of a path in the repository. Each part of a name must be a word of some source file. After a package
// or a type of ours, the next part must be one of its declarations, fields or methods.
func TestNamesInPages(t *testing.T) {
	paths, words := repositoryNames(t)
	members := declaredMembers(t)
	checked := 0
	for _, pattern := range []string{
		"CONTRIBUTING.md", "docs/tour.md", "docs/request.md", "docs/concurrency.md", "docs/schema.md",
		"docs/design/*.md",
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
				if !foreignNames[name] && !exists(name, paths, words, members) {
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
	"raft.Node.Status": true, "spec.replicas": true, "TestDefaultStorageEncoding": true,
}

var (
	inCode        = regexp.MustCompile("`[^`\n]+`")
	pathName      = regexp.MustCompile(`^[a-z_][\w-]*(/[\w.-]+)+/?$|^[a-z]\w*\.(go|txt)$`)
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

// exists reports whether a path or each part of a name exists. Paths that begin outside of the repository's folders,
// such as "pods/exec", are resources or packages of others.
func exists(name string, paths, words map[string]bool, members map[string]map[string]bool) bool {
	if pathName.MatchString(name) {
		name = strings.TrimSuffix(name, "/")
		first, _, deep := strings.Cut(name, "/")
		return paths[name] || deep && !paths[first]
	}
	if strings.HasSuffix(name, ".k8s.io") {
		return true // a group
	}
	before := ""
	for part := range strings.SplitSeq(name, ".") {
		m := members[before]
		declared := m == nil || m[part] || m[anyMember] || strings.HasPrefix(part, "Test")
		if !words[part] || !declared {
			return false
		}
		before = part
	}
	return true
}

// anyMember is a member of a type that has the members of an embedded one too.
const anyMember = "*"

// declaredMembers returns the declarations of each package, by its name, and the fields and methods of each type.
// Packages or types of one name share an entry.
func declaredMembers(t *testing.T) map[string]map[string]bool {
	t.Helper()
	members := map[string]map[string]bool{}
	add := func(of, name string) {
		if members[of] == nil {
			members[of] = map[string]bool{}
		}
		members[of][name] = true
	}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		for _, decl := range f.tree.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(f.name, d.Name.Name)
				} else {
					add(typeName(d.Recv.List[0].Type), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						add(f.name, s.Name.Name)
						addFields(s, add)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							add(f.name, name.Name)
						}
					}
				}
			}
		}
	}
	return members
}

// addFields adds the fields of a struct or the methods of an interface. Any other type may have members elsewhere.
func addFields(s *ast.TypeSpec, add func(of, name string)) {
	var fields *ast.FieldList
	switch u := s.Type.(type) {
	case *ast.StructType:
		fields = u.Fields
	case *ast.InterfaceType:
		fields = u.Methods
	default:
		add(s.Name.Name, anyMember)
		return
	}
	for _, field := range fields.List {
		if len(field.Names) == 0 {
			add(s.Name.Name, anyMember)
		}
		for _, name := range field.Names {
			add(s.Name.Name, name.Name)
		}
	}
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
	words := map[string]bool{"View": true, "Run": true, "Stop": true, "TestView": true}
	members := map[string]map[string]bool{"View": {"Run": true}}
	text := "`View.Run` `View.Stop` `Stop.Run` `View.Walk` `verb/create.go` `verb/gone.go` `pods/exec` `TestView` `lower` [x](`y z`)\n" +
		"```\n`View.Gone`\n```\n"
	for _, name := range namesIn(text) {
		want := name != "View.Walk" && name != "View.Stop" && name != "verb/gone.go"
		if exists(name, paths, words, members) != want {
			t.Errorf("%s is known: %t, want %t", name, !want, want)
		}
	}
	if n := len(namesIn(text)); n != 8 {
		t.Errorf("%d names, want 8", n)
	}
}
