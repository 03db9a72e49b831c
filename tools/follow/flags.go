package main

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"strings"
)

// flagName matches the names of flags, and flagMethod the methods that define one.
var (
	flagName   = regexp.MustCompile(`^[a-z*][a-z0-9*-]+$`)
	flagMethod = regexp.MustCompile(`^([A-Z][A-Za-z0-9]*)?VarP?$|^(Bool|String|Int|Duration|StringSlice)$`)
)

// readFlags returns the flags that the packages of options of kube-apiserver define: "--etcd-servers" with the method
// and a hash of the default and the help. A name that is made at run time has * for its variable parts.
func readFlags(t tree) (items, error) {
	all := items{}
	for _, folder := range []string{
		filepath.Join(t["kubernetes"], "cmd/kube-apiserver/app/options"),
		filepath.Join(t["kubernetes"], "pkg/controlplane/apiserver/options"),
		filepath.Join(t["kubernetes"], "pkg/kubeapiserver/options"),
		filepath.Join(t["kubernetes"], "plugin/pkg/admission/defaulttolerationseconds"),
		filepath.Join(t["apiserver"], "pkg/server/options"), filepath.Join(t["component-base"], "cli/globalflag"),
		filepath.Join(t["component-base"], "compatibility"), filepath.Join(t["component-base"], "featuregate"),
		filepath.Join(t["component-base"], "logs/api"), filepath.Join(t["component-base"], "metrics"),
		filepath.Join(t["component-base"], "version"),
	} {
		constants := map[string]string{}
		collect := func(s source) error { s.constants(constants); return nil }
		if err := goFiles(folder, handwritten, collect); err != nil {
			return nil, err
		}
		read := func(s source) error { s.flags(constants, all); return nil }
		if err := goFiles(folder, handwritten, read); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// constants adds the string constants of a file.
func (s source) constants(all map[string]string) {
	ast.Inspect(s.File, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			for i, name := range v.Names {
				if i < len(v.Values) && literal(v.Values[i]) != "" {
					all[name.Name] = literal(v.Values[i])
				}
			}
		}
		return true
	})
}

// flagOf returns the name of a flag in an argument, "" for other arguments.
func (s source) flagOf(argument ast.Expr, constants map[string]string) string {
	name := literal(argument)
	switch a := argument.(type) {
	case *ast.Ident:
		name = constants[a.Name]
	case *ast.CallExpr: // fmt.Sprintf("--audit-%s-mode", …)
		if len(a.Args) > 1 && s.text(a.Fun) == "fmt.Sprintf" {
			name = strings.ReplaceAll(literal(a.Args[0]), "%s", "*")
		}
	}
	if flagName.MatchString(name) {
		return "--" + name
	}
	return ""
}

func (s source) flags(constants map[string]string, all items) {
	ast.Inspect(s.File, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 3 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !flagMethod.MatchString(method.Sel.Name) {
			return true
		}
		for i, a := range call.Args[:2] {
			name := s.flagOf(a, constants)
			if name == "" {
				continue
			}
			rest := ""
			for _, other := range call.Args[i+1:] {
				rest += s.text(other) + ","
			}
			all[name] = strings.TrimSuffix(method.Sel.Name, "Var") + " " + hash(rest)
			break
		}
		return true
	})
}
