package main

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// constant is a literal, or another name for one.
type constant struct {
	typ     typeName // empty if the declaration has no type
	value   string   // as in the source: strings with quotes
	same    typeName // the constant with the same value, if value is empty
	comment string
}

// enum returns the constants of a type marked "+enum", or a pointer to one, by value, and nil for any other type.
func (g *generator) enum(e ast.Expr, d *declaration) ([]constant, error) {
	if p, ok := e.(*ast.StarExpr); ok {
		e = p.X
	}
	if id, ok := e.(*ast.Ident); ok && basic(id.Name) != nil {
		return nil, nil
	}
	n, err := d.resolve(e)
	if err != nil {
		return nil, nil // lists, maps, functions
	}
	to, err := g.src.lookup(n)
	if err != nil {
		return nil, err
	}
	if id, ok := to.spec.Type.(*ast.Ident); !ok || id.Name != "string" || !to.doc.has("enum") {
		return nil, nil
	}
	byValue := map[string]constant{}
	for _, c := range g.src.constants {
		if c.typ == n && c.value == "" {
			if err := g.src.load(c.same.path); err != nil {
				return nil, err
			}
			c.value = g.src.constants[c.same].value
		}
		// Of two names for one value the longer described one counts, as in Kubernetes' generator.
		if old, ok := byValue[c.value]; c.typ == n &&
			(!ok || len(old.comment) < len(c.comment) || len(old.comment) == len(c.comment) &&
				old.comment > c.comment) {
			byValue[c.value] = c
		}
	}
	out := make([]constant, 0, len(byValue))
	for _, c := range byValue {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b constant) int { return strings.Compare(a.value, b.value) })
	return out, nil
}

// explained returns a field's comment with Kubernetes' list of the enum's values.
func explained(doc comment, values []constant) comment {
	if len(values) == 0 {
		return doc
	}
	lines := make([]string, len(values))
	for i, c := range values {
		lines[i] = fmt.Sprintf(" - `%s` %s\n", c.value, c.comment)
	}
	slices.Sort(lines)
	return comment{doc.text + "\nPossible enum values:\n" + strings.Join(lines, "")}
}

// literals returns the values, without quotes.
func literals(values []constant) ([]string, error) {
	var out []string
	for _, c := range values {
		v, err := strconv.Unquote(c.value)
		if err != nil {
			return nil, fmt.Errorf("constant %s: %w", c.value, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// readConstants records the constants that are literals or names of others.
func (s *sources) readConstants(importPath string, imports map[string]string, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		vs := spec.(*ast.ValueSpec)
		doc := vs.Doc
		if doc == nil && !decl.Lparen.IsValid() {
			doc = decl.Doc
		}
		for i, name := range vs.Names {
			if i >= len(vs.Values) {
				continue
			}
			value, typ := vs.Values[i], vs.Type
			if call, ok := value.(*ast.CallExpr); ok && typ == nil && len(call.Args) == 1 { // T("x")
				value, typ = call.Args[0], call.Fun
			}
			var c constant
			if lit, ok := value.(*ast.BasicLit); ok {
				c.value = lit.Value
			} else if same, err := (&declaration{path: importPath, imports: imports}).resolve(value); err == nil {
				c.same = same
			} else {
				continue
			}
			if id, ok := typ.(*ast.Ident); ok {
				c.typ = typeName{importPath, id.Name}
			}
			c.comment = strings.Join(strings.Fields(strings.TrimPrefix(strings.TrimSpace(doc.Text()), name.Name)), " ")
			s.constants[typeName{importPath, name.Name}] = c
		}
	}
}
