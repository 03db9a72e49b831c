// Package durable replaces files so that a reader, a crash or a loss of power finds the old content or the new one, and
// so that what a caller has been told is written stays.
//
// A rename is atomic, and not kept before the folder is synced: a loss of power could bring back the file of before, or
// none. It stands below everything that writes files which matter: keys, kubeconfigs, snapshots, backups. All functions
// may be called by several goroutines.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile replaces file with data, mode 0600. The folder must be there.
func WriteFile(file string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*") // 0600
	if err != nil {
		return err
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
	}
	return err
}

// Rename gives a file, or a folder, the place of another, and keeps it there. What is in it the caller has synced.
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
