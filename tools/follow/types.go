package main

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

// apiFolders are the folders with versioned API types, by module.
var apiFolders = map[string]string{
	"api": ".", "apimachinery": "pkg/apis/meta", "apiextensions-apiserver": "pkg/apis/apiextensions",
	"kube-aggregator": "pkg/apis/apiregistration",
}

// readTypes returns the types of the API, their fields and their constants: "core/v1 PodSpec", "core/v1
// PodSpec.hostUsers", "apps/v1 StatefulSetUpdateStrategyType=Recreate".
func readTypes(t tree) (items, error) {
	all := items{}
	for module, folder := range apiFolders {
		root := filepath.Join(t[module], folder)
		prefix := ""
		if folder != "." {
			prefix = filepath.Base(folder) + "/"
		}
		wanted := func(path string) bool { return handwritten(path) && strings.HasPrefix(filepath.Base(path), "types") }
		err := goFiles(root, wanted, func(s source) error {
			if !strings.HasPrefix(filepath.Base(s.folder), "v") {
				return nil // internal types
			}
			s.types(prefix+s.folder+" ", all)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s source) types(prefix string, all items) {
	for _, d := range s.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				s.typeSpec(prefix+spec.Name.Name, spec, all)
			case *ast.ValueSpec:
				typed, ok := spec.Type.(*ast.Ident)
				if ok && typed.IsExported() && g.Tok == token.CONST && len(spec.Values) == 1 {
					if value := literal(spec.Values[0]); value != "" {
						all[prefix+typed.Name+"="+value] = spec.Names[0].Name
					}
				}
			}
		}
	}
}

func (s source) typeSpec(name string, spec *ast.TypeSpec, all items) {
	st, ok := spec.Type.(*ast.StructType)
	if !ok {
		all[name] = s.text(spec.Type)
		return
	}
	all[name] = "struct"
	for _, f := range st.Fields.List {
		tag := ""
		if f.Tag != nil {
			tag = reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
		}
		field, options, _ := strings.Cut(tag, ",")
		if field == "" || field == "-" {
			continue // embedded, or not in the API
		}
		value := s.text(f.Type)
		if options = strings.ReplaceAll(options, "omitempty", ""); options != "" {
			value += " " + options
		}
		all[name+"."+field] = value
	}
}
