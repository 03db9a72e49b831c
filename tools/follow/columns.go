package main

import (
	"go/ast"
	"path/filepath"
	"strings"
)

// readColumns returns the columns of kinds: "pod: Ready" with type, format, priority and description.
func readColumns(t tree) (items, error) {
	all := items{}
	root := filepath.Join(t["kubernetes"], "pkg/printers/internalversion")
	err := goFiles(root, handwritten, func(s source) error { s.columns(all); return nil })
	return all, err
}

// columns reads the assignments podColumnDefinitions := []metav1.TableColumnDefinition{{Name: "Name", …}, …}.
func (s source) columns(all items) {
	ast.Inspect(s.File, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
			return true
		}
		kind, ok := strings.CutSuffix(s.text(a.Lhs[0]), "ColumnDefinitions")
		list, composite := a.Rhs[0].(*ast.CompositeLit)
		if kind = strings.TrimSuffix(kind, "Table"); !ok || !composite {
			return true
		}
		for _, e := range list.Elts {
			column, ok := e.(*ast.CompositeLit)
			if !ok {
				continue
			}
			name, value := "", ""
			for _, field := range column.Elts {
				pair, ok := field.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				if s.text(pair.Key) == "Name" {
					name = literal(pair.Value)
				} else {
					value += " " + s.text(pair.Value)
				}
			}
			all[kind+": "+name] = strings.TrimSpace(value)
		}
		return true
	})
}
