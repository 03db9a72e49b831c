package main

import (
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readPlugins returns the admission plugins: "NodeRestriction" with a hash of its sources.
func readPlugins(t tree) (items, error) {
	all := items{}
	file := filepath.Join(t["kubernetes"], "pkg/kubeapiserver/options/plugins.go")
	err := goFiles(file, handwritten, func(s source) error {
		imports := map[string]string{}
		for _, i := range s.Imports {
			path := literal(i.Path)
			name := filepath.Base(path)
			if i.Name != nil {
				name = i.Name.Name
			}
			imports[name] = path
		}
		used := map[string]bool{}
		ast.Inspect(s.File, func(n ast.Node) bool {
			e, ok := n.(*ast.SelectorExpr)
			if ok && e.Sel.Name == "PluginName" {
				used[s.text(e.X)] = true
			}
			return true
		})
		for _, name := range slices.Sorted(maps.Keys(used)) {
			if err := readPlugin(t, imports[name], all); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// readPlugin reads a plugin's package by its import path.
func readPlugin(t tree, path string, all items) error {
	module, folder, _ := strings.Cut(strings.TrimPrefix(path, "k8s.io/"), "/")
	root := filepath.Join(t[module], folder)
	if _, err := os.Stat(root); t[module] == "" || err != nil {
		return nil // of a module without behaviour of the server
	}
	name, text := filepath.Base(path), ""
	err := goFiles(root, handwritten, func(s source) error {
		ast.Inspect(s.File, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if ok && v.Names[0].Name == "PluginName" && len(v.Values) == 1 {
				if value := literal(v.Values[0]); value != "" {
					name = value
				}
			}
			return true
		})
		s.functions(func(function, source string) { text += function + source })
		return nil
	})
	all[name] = hash(text)
	return err
}
