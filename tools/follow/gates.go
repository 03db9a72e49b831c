package main

import (
	"go/ast"
	"path/filepath"
	"strings"
)

// readGates returns the feature gates with their newest default: "1.37: true, Beta".
func readGates(t tree) (items, error) {
	all := items{}
	for _, folder := range []string{
		filepath.Join(t["kubernetes"], "pkg/features"), filepath.Join(t["apiserver"], "pkg/features"),
		filepath.Join(t["apiextensions-apiserver"], "pkg/features"),
	} {
		if err := goFiles(folder, handwritten, func(s source) error { s.gates(all); return nil }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// gates reads tables of the form {Gate: {{Version: version.MustParse("1.37"), Default: true, PreRelease: …}, …}}.
func (s source) gates(all items) {
	ast.Inspect(s.File, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		specs, ok := pair.Value.(*ast.CompositeLit)
		if !ok || len(specs.Elts) == 0 {
			return true
		}
		newest, ok := specs.Elts[len(specs.Elts)-1].(*ast.CompositeLit)
		if !ok {
			return true
		}
		fields := map[string]string{}
		for _, e := range newest.Elts {
			if f, ok := e.(*ast.KeyValueExpr); ok {
				fields[s.text(f.Key)] = s.text(f.Value)
			}
		}
		if fields["Version"] == "" || fields["PreRelease"] == "" {
			return true
		}
		name := s.text(pair.Key)
		name = name[strings.LastIndex(name, ".")+1:]
		since := strings.Trim(strings.TrimPrefix(fields["Version"], "version.MustParse"), `()"`)
		// A table may be repeated by a module above; its last one counts.
		all[name] = since + ": " + fields["Default"] + ", " + strings.TrimPrefix(fields["PreRelease"], "featuregate.")
		return false
	})
}
