//go:build unix

package content

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// TestReadOfOddFiles checks that a directory is refused at once if its manifests include a pipe, a device or a dangling
// link, and that the error names the file.
func TestReadOfOddFiles(t *testing.T) {
	t.Parallel()
	for name, odd := range map[string]func(file string) error{
		"pipe":             func(file string) error { return syscall.Mkfifo(file, 0o600) },
		"endless":          func(file string) error { return os.Symlink("/dev/zero", file) },
		"itself":           func(file string) error { return os.Symlink(filepath.Base(file), file) },
		"nowhere":          func(file string) error { return os.Symlink("nothing", file) },
		"link to a folder": func(file string) error { return os.Symlink(".", file) },
		"larger than all memory": func(file string) error {
			return errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 1<<50))
		},
	} {
		for _, extension := range []string{".yaml", ".yml", ".json"} {
			dir := t.TempDir()
			if err := odd(filepath.Join(dir, name+extension)); err != nil {
				if name == "larger than all memory" {
					continue // not every file system has such files
				}
				t.Fatal(err)
			}
			if _, err := read([]string{dir}, nil); err == nil || !strings.Contains(err.Error(), name+extension) {
				t.Errorf("%s%s: %v", name, extension, err)
			}
		}
	}
}

// TestTreeStaysInside checks that an export only writes below its directory, whatever names a server returns and
// whatever links are in the directory.
func TestTreeStaysInside(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	dir, victim := filepath.Join(above, "tree"), filepath.Join(above, "victim.yaml")
	err := errors.Join(os.WriteFile(victim, []byte("kept"), 0o600),
		os.MkdirAll(filepath.Join(dir, namespacesDir, "shop", "configmaps"), 0o700),
		os.WriteFile(filepath.Join(dir, marker), nil, 0o600),
		os.Symlink(victim, filepath.Join(dir, namespacesDir, "shop", "configmaps", "a.yaml")),
		os.Symlink(above, filepath.Join(dir, namespacesDir, "linked")))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := openTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.dir.Close()
	odd := []string{
		"..", ".", "../..", "../victim", "../../../victim", "/etc/passwd", "a/b", "a\\b", "", "a\nb", "\x1b[2J",
		"%2e%2e", ".git", "größe", strings.Repeat("../", 20) + "victim", "CON", "system:a:b",
	}
	seen := map[string]string{}
	put := func(namespace, resource, name string, fails bool) {
		t.Helper()
		obj := &unstructured.Unstructured{Object: map[string]any{"kind": "X"}}
		obj.SetNamespace(namespace)
		obj.SetName(name)
		r := connect.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: resource}}
		if err := tree.put(r, obj); (err != nil) != fails {
			t.Errorf("%q %q %q: %v", namespace, resource, name, err)
		}
		at, key := pathOf(r, obj), namespace+"\x00"+resource+"\x00"+name
		if other, ok := seen[at]; ok && other != key {
			t.Errorf("%q and %q have the file %s", other, key, at)
		}
		seen[at] = key
		if !filepath.IsLocal(at) || strings.ContainsAny(at, "\\:\n\x1b") {
			t.Errorf("%q is the path %q", key, at)
		}
	}
	for _, name := range odd {
		put("shop", "configmaps", name, false)
		put("shop", name, "a", false)
		put(name, "configmaps", "a", false)
	}
	put("shop", "configmaps", "a", false)  // a link to a file outside
	put("linked", "configmaps", "a", true) // a link to a directory outside
	if _, err := tree.prune(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(victim)
	entries, readErr := os.ReadDir(above)
	if err := errors.Join(err, readErr); err != nil || string(text) != "kept" || len(entries) != 2 {
		t.Errorf("outside are %v, the victim has %q, %v", entries, text, err)
	}
}
