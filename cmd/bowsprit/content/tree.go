package content

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/files"
)

// clusterDir and namespacesDir are the directories of the files.
const (
	clusterDir    = "cluster"
	namespacesDir = "namespaces"
)

// marker is a file that marks a directory as written by export, which may remove files from it.
const marker = ".bowsprit-export"

const markerText = "Written by \"bowsprit export\", which removes the files of deleted objects.\n"

// tree is a directory of files, one for each object. Paths in it are relative and have slashes.
type tree struct {
	dir              *files.Dir
	written          map[string]bool // by path
	objects, changed int
}

// openTree makes a directory for an export, or opens one with an earlier export.
func openTree(directory string) (*tree, error) {
	entries, err := os.ReadDir(directory)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case holdsOthers(entries):
		return nil, fmt.Errorf("%s holds files that export did not write: name a new directory, or an empty one",
			directory)
	}
	dir, err := files.OpenDir(directory)
	if err != nil {
		return nil, err
	}
	t := &tree{dir: dir, written: map[string]bool{}}
	if err := dir.Write(marker, []byte(markerText), 0o644); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return t, nil
}

// holdsOthers reports whether a directory has files, but no marker. Names that begin with a dot, such as .git, do not
// count.
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

// fileName returns a name for a file that all file systems take. The server is not believed to give names without
// slashes and dots alone.
func fileName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func pathOf(r connect.Resource, obj *unstructured.Unstructured) string {
	file := path.Join(fileName(r.GroupResource().String()), fileName(obj.GetName())+".yaml")
	if namespace := obj.GetNamespace(); namespace != "" {
		return path.Join(namespacesDir, fileName(namespace), file)
	}
	return path.Join(clusterDir, file)
}

// put writes the file of an object, unless the file exists with the same content. Only the owner may read the files of
// secrets.
func (t *tree) put(r connect.Resource, obj *unstructured.Unstructured) error {
	text, err := yaml.Marshal(obj.Object)
	if err != nil {
		return fmt.Errorf("%s: %w", obj.GetName(), err)
	}
	at := pathOf(r, obj)
	t.written[at] = true
	t.objects++
	if old, err := t.dir.Read(at); err == nil && bytes.Equal(old, text) {
		return nil
	}
	mode := fs.FileMode(0o644)
	if r.Group == "" && r.Resource == "secrets" {
		mode = 0o600
	}
	t.changed++
	return t.dir.Write(at, text, mode)
}

// prune removes the files of objects that have not been put, and directories without files. It follows no links.
func (t *tree) prune() (removed int, err error) {
	for _, below := range []string{clusterDir, namespacesDir} {
		if info, err := fs.Lstat(t.dir.FS(), below); err != nil || !info.IsDir() {
			continue
		}
		var directories []string
		err := fs.WalkDir(t.dir.FS(), below, func(at string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir():
				directories = append(directories, at)
				return nil
			case t.written[at] || path.Ext(at) != ".yaml":
				return nil
			}
			removed++
			return t.dir.Remove(at)
		})
		if err != nil {
			return removed, err
		}
		for i := len(directories) - 1; i >= 0; i-- {
			_ = t.dir.Remove(directories[i]) // fails if the directory contains files, as it should
		}
	}
	return removed, nil
}
