// Package durable replaces files so that a reader, a crash or a power loss finds the old content or the new one, and so
// that completed writes are permanent.
//
// A rename is atomic, but not permanent before the folder is synced: a power loss could restore the former file, or
// none. The package stands below all writers of important files: keys, kubeconfigs, snapshots, backups. All functions
// are safe for concurrent use.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile replaces file with data, mode 0600. The folder must exist.
func WriteFile(file string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*") // 0600
	if err != nil {
		return &fs.PathError{Op: "write", Path: file, Err: cause(err)}
	}
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = Rename(temp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return &fs.PathError{Op: "write", Path: file, Err: cause(err)}
	}
	return nil
}

// cause returns the reason of an error, without the name of the temporary file.
func cause(err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	if link := (*os.LinkError)(nil); errors.As(err, &link) {
		return link.Err
	}
	return err
}

// Rename moves a file or folder permanently to another place. The caller has synced its content.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	syncFolder(filepath.Dir(to))
	return nil
}

// syncFolder has the names in a folder on disk. Not every file system can; the rename is atomic without it.
func syncFolder(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	_ = d.Sync()
	_ = d.Close()
}
