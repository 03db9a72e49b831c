package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// lockDataDir makes dir and takes it for this process. etcd itself would wait without end, and without a word, for
// another process to let go of the database.
func lockDataDir(dir string) (*fileutil.LockedFile, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: data directory %s cannot be made: %w; choose another --data-dir or correct its permissions", dir, err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_WRONLY|os.O_CREATE, 0o600)
	switch {
	case errors.Is(err, fileutil.ErrLocked):
		return nil, fmt.Errorf("store: data directory %s is in use by another process; stop it, or choose another --data-dir", dir)
	case err != nil:
		return nil, fmt.Errorf("store: data directory %s cannot be used: %w; choose another --data-dir or correct its permissions", dir, err)
	}
	if err := checkForeign(dir); err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// checkForeign finds a plain etcd that runs on dir: it knows nothing of our lock file but locks its log.
func checkForeign(dir string) error {
	segments, _ := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	for _, s := range segments {
		f, err := fileutil.TryLockFile(s, os.O_RDWR, 0o600)
		if errors.Is(err, fileutil.ErrLocked) {
			return fmt.Errorf("store: data directory %s is in use by another etcd; stop it, or choose another --data-dir", dir)
		}
		if err == nil {
			f.Close()
		}
	}
	return nil
}

// checkDatabase opens the database read-only and compares its size with what its header says, because etcd maps the
// file into memory: a page that is missing there is not an error but a signal that ends the process. It panics when
// bolt does, on pages that make no sense; the caller recovers.
func checkDatabase(dir string) error {
	path := filepath.Join(dir, "member", "snap", "db")
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer db.Close()
	return db.View(func(tx *bolt.Tx) error {
		if tx.Size() > info.Size() {
			return fmt.Errorf("%s: is %d bytes long, but %d are in use: the file was cut off", path, info.Size(), tx.Size())
		}
		return nil
	})
}
