package aspod

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// writeDirectory makes files the content of a directory, at once: a reader finds the old files or the new ones, never a
// mixture. The layout is a kubelet's, which programs that watch for changes rely on: ..data links to a directory with
// the files, and each name links into ..data.
func writeDirectory(dir string, files content) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	next, err := os.MkdirTemp(dir, "..files-") // mode 0700
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(next))
		}
	}()
	names := map[string]bool{}
	for name, data := range files {
		file := filepath.Join(next, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			return err
		}
		first, _, _ := strings.Cut(name, "/")
		names[first] = true
	}
	link, temporary := filepath.Join(dir, "..data"), filepath.Join(dir, "..data_tmp")
	old, oldErr := os.Readlink(link)
	if err := os.Symlink(filepath.Base(next), temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, link); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if err := linkNames(dir, names); err != nil {
		return err
	}
	if oldErr == nil {
		return os.RemoveAll(filepath.Join(dir, old))
	}
	return nil
}

// linkNames makes the links of a directory to the names in ..data, and removes other links.
func linkNames(dir string, names map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		ours := e.Type()&fs.ModeSymlink != 0 && !strings.HasPrefix(e.Name(), "..")
		if ours && !names[e.Name()] {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for name := range names {
		err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
