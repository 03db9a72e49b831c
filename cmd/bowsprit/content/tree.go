package content

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// The two directories in which the files are.
const (
	clusterDir    = "cluster"
	namespacesDir = "namespaces"
)

// marker is a file that says that a directory was written by export, which may remove files from it.
const marker = ".bowsprit-export"

const markerText = "Written by \"bowsprit export\", which removes the files of objects that are gone.\n"

// tree is a directory of files, one for each object.
type tree struct {
	directory        string
	written          map[string]bool // by path
	objects, changed int
}

// openTree makes a directory for an export, or takes one that has one.
func openTree(directory string) (*tree, error) {
	entries, err := os.ReadDir(directory)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case holdsOthers(entries):
		return nil, fmt.Errorf("%s holds files that export has not written: name a new directory, or an empty one",
			directory)
	}
	t := &tree{directory: directory, written: map[string]bool{}}
	return t, os.WriteFile(filepath.Join(directory, marker), []byte(markerText), 0o644)
}

// holdsOthers reports whether a directory has files, but no marker. What begins with a dot, such as .git, is none of
// them.
func holdsOthers(entries []fs.DirEntry) bool {
	others := false
	for _, e := range entries {
		if e.Name() == marker {
			return false
		}
		others = others || !strings.HasPrefix(e.Name(), ".")
	}
	return others
}

// fileName returns a name for a file that all file systems take.
func fileName(name string) string { return strings.ReplaceAll(name, ":", "%3A") + ".yaml" }

func (t *tree) path(r connect.Resource, obj *unstructured.Unstructured) string {
	resource := r.GroupResource().String()
	if namespace := obj.GetNamespace(); namespace != "" {
		return filepath.Join(t.directory, namespacesDir, namespace, resource, fileName(obj.GetName()))
	}
	return filepath.Join(t.directory, clusterDir, resource, fileName(obj.GetName()))
}

// put writes the file of an object, unless it is there with the same content. Secrets are for their owner's eyes.
func (t *tree) put(r connect.Resource, obj *unstructured.Unstructured) error {
	text, err := yaml.Marshal(obj.Object)
	if err != nil {
		return fmt.Errorf("%s: %w", obj.GetName(), err)
	}
	path := t.path(r, obj)
	t.written[path] = true
	t.objects++
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if r.Group == "" && r.Resource == "secrets" {
		mode = 0o600
	}
	t.changed++
	return os.WriteFile(path, text, mode)
}

// prune removes the files of objects that have not been put, and directories without files.
func (t *tree) prune() (removed int, err error) {
	for _, below := range []string{clusterDir, namespacesDir} {
		root := filepath.Join(t.directory, below)
		var directories []string
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist) && path == root:
				return nil
			case err != nil:
				return err
			case e.IsDir():
				directories = append(directories, path)
				return nil
			case t.written[path] || filepath.Ext(path) != ".yaml":
				return nil
			}
			removed++
			return os.Remove(path)
		})
		if err != nil {
			return removed, err
		}
		for i := len(directories) - 1; i >= 0; i-- {
			_ = os.Remove(directories[i]) // fails for those that have files, which is as it should be
		}
	}
	return removed, nil
}
