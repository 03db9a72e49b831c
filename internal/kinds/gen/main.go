// Command gen writes the schemas of the built-in kinds: a line for each type, sorted, with its OpenAPI name, a tab,
// its schema.
//
//	go run ./internal/kinds/gen
//
// It reads the sources of the types (k8s.io/api and its like, at the versions that go.mod names) rather than their
// compiled form, because what a schema says beyond names and types stands in comments: descriptions, +optional,
// +default, +listType, +listMapKey, +mapType, +structType, +enum. The rules for reading them are those of Kubernetes'
// OpenAPI generator. Which kinds it starts from is what package kinds lists; everything that they reach comes along.
//
// TestFresh fails when the files are not what this command would write.
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
