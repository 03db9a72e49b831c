// Command gen writes the schemas of the built-in kinds: one line for each type, sorted, with its OpenAPI name, a tab,
// and its schema.
//
//	go run ./internal/kinds/gen
//
// It reads the sources of the types (k8s.io/api and others, at the versions in go.mod) and not their compiled form,
// because comments hold part of the schema: descriptions, +optional, +default, +listType, +listMapKey, +mapType,
// +structType, +enum. The rules for comments are those of Kubernetes' OpenAPI generator. It starts from the kinds in
// package kinds, and includes all types that they reference.
//
// TestFresh fails if the files differ from the output of this command.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run("internal/kinds/schemas"); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run replaces the texts in dir.
func run(dir string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
