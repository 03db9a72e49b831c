package main

import (
	"path/filepath"
	"strings"
)

// readValidation returns the hand-written validation functions: "core ValidatePodSpec".
func readValidation(t tree) (items, error) {
	all := items{}
	validation := func(path string) bool {
		return handwritten(path) && strings.Contains(filepath.ToSlash(path), "/validation/")
	}
	err := readFunctions(filepath.Join(t["kubernetes"], "pkg/apis"), validation, "", all)
	if err == nil {
		err = readFunctions(filepath.Join(t["kubernetes"], "pkg/api"), handwritten, "api/", all)
	}
	if err == nil {
		err = readFunctions(filepath.Join(t["apimachinery"], "pkg/api/validation"), handwritten, "meta/", all)
	}
	if err == nil {
		err = readFunctions(filepath.Join(t["apiextensions-apiserver"], "pkg/apis"), validation, "", all)
	}
	return all, err
}

// readDeclarative returns the generated validation functions, which follow the tags of types.
func readDeclarative(t tree) (items, error) {
	all := items{}
	err := readFunctions(filepath.Join(t["kubernetes"], "pkg/apis"), func(path string) bool {
		return filepath.Base(path) == "zz_generated.validations.go"
	}, "", all)
	return all, err
}

// readDefaults returns the functions that set defaults.
func readDefaults(t tree) (items, error) {
	all := items{}
	err := readFunctions(filepath.Join(t["kubernetes"], "pkg/apis"), func(path string) bool {
		return filepath.Base(path) == "defaults.go"
	}, "", all)
	return all, err
}

func readFunctions(root string, wanted func(path string) bool, prefix string, all items) error {
	return goFiles(root, wanted, func(s source) error {
		folder := strings.TrimSuffix(strings.TrimSuffix(s.folder, "/validation"), "/.")
		s.functions(func(name, text string) {
			if name != "init" {
				all[prefix+folder+" "+name] = hash(text)
			}
		})
		return nil
	})
}
