package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/bowsprit/bowsprit/internal/storage/store"
)

// lockDataDir creates dir and locks it for this process. etcd itself would wait silently and without limit until
// another process releases the database.
func lockDataDir(dir string) (*fileutil.LockedFile, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil,
			fmt.Errorf(
				"store: data directory %s cannot be made: %w; choose another --data-dir or correct its permissions",
				dir, err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_WRONLY|os.O_CREATE, 0o600)
	switch {
	case errors.Is(err, fileutil.ErrLocked):
		return nil, fmt.Errorf("store: data directory %s is %w; stop it, or choose another --data-dir", dir, store.ErrInUse)
	case err != nil:
		return nil,
			fmt.Errorf(
				"store: data directory %s cannot be used: %w; choose another --data-dir or correct its permissions",
				dir, err)
	}
	if err := checkForeign(dir); err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// checkForeign detects a plain etcd on dir: it ignores our lock file but locks its own log.
func checkForeign(dir string) error {
	segments, _ := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	for _, s := range segments {
		f, err := fileutil.TryLockFile(s, os.O_RDWR, 0o600)
		if errors.Is(err, fileutil.ErrLocked) {
			return fmt.Errorf(
				"store: data directory %s is in use by another etcd; stop it, or choose another --data-dir", dir)
		}
		if err == nil {
			f.Close()
		}
	}
	return nil
}
