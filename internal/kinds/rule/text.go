package rule

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Function checks the value of a rule's line, which may be missing.
type Function = func(*Validation, Value)

// Functions are the functions that the rules of a text name.
type Functions map[string]Function

// Text holds the texts of a group of kinds: columns, defaults and rules. It is parsed at its first use, and safe for
// concurrent use.
type Text struct {
	sections map[section][]string
	defaults func() (defaults, error)
	rules    func() (blocks, error)
}

// section is the heading of a part of a text: columns, defaults or rules, and the kind or type.
type section struct{ keyword, of string }

// NewText returns the texts (*.txt) of a group. Its rules may name functions, and types of imports.
//
// The texts are part of the program: NewText panics if a rule names a missing function, or if a function is unused.
// Verify finds the other mistakes; each group has a test that calls it.
func NewText(files embed.FS, imports []*Text, functions ...Functions) *Text {
	t, err := newText(files, imports, functions...)
	if err != nil {
		panic(err)
	}
	return t
}

func newText(files fs.FS, imports []*Text, functions ...Functions) (*Text, error) {
	named := standardFunctions()
	var problems []error
	for _, some := range functions {
		for name, f := range some {
			if named[name] != nil {
				problems = append(problems, fmt.Errorf("function %s is there twice", name))
			}
			named[name] = f
		}
	}
	t := &Text{sections: map[section][]string{}}
	if err := t.read(files); err != nil {
		return nil, err
	}
	t.defaults = sync.OnceValues(func() (defaults, error) { return t.parseDefaults(imports) })
	t.rules = sync.OnceValues(func() (blocks, error) { return t.parseRules(imports, named) })
	used := t.functionNames()
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if named[name] == nil {
			problems = append(problems, fmt.Errorf("rules of %s: no function %s", used[name], name))
		}
	}
	for _, some := range functions {
		for _, name := range slices.Sorted(maps.Keys(some)) {
			if used[name] == "" {
				problems = append(problems, fmt.Errorf("no rule names function %s", name))
			}
		}
	}
	return t, errors.Join(problems...)
}

// read splits the files into sections.
func (t *Text) read(files fs.FS) error {
	names, err := fs.Glob(files, "*.txt")
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		var head section
		n := 0
		for l := range strings.Lines(string(data)) {
			n++
			l = strings.TrimRight(l, "\n")
			switch {
			case l == "" || l[0] == '#':
			case l[0] != '\t':
				keyword, of, _ := strings.Cut(l, " ")
				head = section{keyword, of}
				if keyword != "columns" && keyword != "defaults" && keyword != "rules" || of == "" ||
					strings.Contains(of, " ") {
					return fmt.Errorf("%s:%d: %q is neither columns, defaults nor rules of a type", name, n, l)
				}
				if t.sections[head] != nil {
					return fmt.Errorf("%s:%d: %s is there already", name, n, l)
				}
				t.sections[head] = []string{}
			case head.keyword == "":
				return fmt.Errorf("%s:%d: %q stands before the first head", name, n, l)
			default:
				t.sections[head] = append(t.sections[head], l[1:])
			}
		}
	}
	return nil
}

// functionNames returns the functions that the rules name, each with the first type that does.
func (t *Text) functionNames() map[string]string {
	used := map[string]string{}
	for head, lines := range t.sections {
		if head.keyword != "rules" {
			continue
		}
		for _, l := range lines {
			if _, name, ok := strings.Cut(l, " ! "); ok && !strings.Contains(name, " ") {
				used[name] = head.of
			}
		}
	}
	return used
}

// Verify reports the errors in the text, which must be only about these kinds.
func (t *Text) Verify(kinds []*catalog.Resource) error {
	known, used := map[string]bool{}, map[section]bool{}
	for _, r := range kinds {
		known[r.Kind] = true
	}
	_, err := t.defaults()
	_, also := t.rules()
	problems := []error{err, also}
	for head, lines := range t.sections {
		for _, l := range lines {
			if words := strings.Fields(l); len(words) > 2 && (words[1] == ":" || words[1] == "|") {
				used[section{head.keyword, words[2]}] = true
			}
		}
	}
	for head := range t.sections {
		kind, _, _ := strings.Cut(head.of, "/")
		switch head.keyword {
		case "columns":
			if !known[head.of] {
				problems = append(problems, fmt.Errorf("columns of %s, which is no kind", head.of))
			}
			if _, err := parseColumns(t.sections[head]); err != nil {
				problems = append(problems, fmt.Errorf("columns of %s: %w", head.of, err))
			}
		case "defaults":
			if !known[head.of] && !used[head] && kinds != nil {
				problems = append(problems,
					fmt.Errorf("defaults of %s, which is neither a kind nor a part of one", head.of))
			}
		case "rules":
			if kind != head.of && !known[kind] {
				problems = append(problems, fmt.Errorf("rules of %s, which is no kind", head.of))
			}
		}
	}
	return errors.Join(problems...)
}

// Columns returns the columns of a kind, nil if the text has none.
func (t *Text) Columns(kind string) []catalog.Column {
	lines := t.sections[section{"columns", kind}]
	if lines == nil {
		return nil
	}
	out, err := parseColumns(lines)
	if err != nil {
		panic(fmt.Errorf("columns of %s: %w", kind, err)) // part of the program
	}
	return out
}

func (t *Text) hasDefaults(kind string) bool { return t.sections[section{"defaults", kind}] != nil }

// fill sets the defaults of obj, an object of the kind.
func (t *Text) fill(kind string, obj object.Object) {
	d, err := t.defaults()
	if err != nil {
		panic(err) // part of the program
	}
	d.apply(kind, obj)
}

func (t *Text) blocks() blocks {
	b, err := t.rules()
	if err != nil {
		panic(err) // part of the program
	}
	return b
}

// Create returns the errors in a new object of the kind apart from its metadata. It stops early if ctx ends.
func (t *Text) Create(ctx context.Context, kind string, obj object.Object) field.ErrorList {
	val := Validation{blocks: t.blocks(), done: ctx.Done(), kind: kind, Obj: obj}
	val.allowed, _ = ctx.Value(allowedKey{}).([]Exception)
	val.lacked, _ = ctx.Value(lackedKey{}).([]string)
	val.Block(kind, obj, nil, nil)
	val.Block(kind+"/create", obj, nil, nil)
	return val.Errs
}

// Update returns the errors in a change from old to obj through a subresource, "" for the object itself. It stops early
// if ctx ends.
func (t *Text) Update(ctx context.Context, kind string, obj, old object.Object, subresource string) field.ErrorList {
	val := Validation{
		blocks: t.blocks(), done: ctx.Done(), kind: kind, Obj: obj, Old: old, Subresource: subresource,
	}
	val.allowed, _ = ctx.Value(allowedKey{}).([]Exception)
	val.lacked, _ = ctx.Value(lackedKey{}).([]string)
	if subresource != "" {
		val.Block(kind+"/"+subresource, obj, old, nil)
		return val.Errs
	}
	val.Block(kind, obj, old, nil)
	val.Block(kind+"/update", obj, old, nil)
	return val.Errs
}

// NoText is the text of a group that has none.
func NoText() *Text { return NewText(embed.FS{}, nil) }
