//go:build unix

package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// holdFile is locked during the lifetime of the server that owns the temporary directory. The lock ends with the
// process, however it ends.
const holdFile = "in-use"

// holdDir marks dir as the directory of a running server.
func holdDir(dir string) (release func(), err error) {
	f, err := lockFile(filepath.Join(dir, holdFile), os.O_CREATE)
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}

// lockFile opens and locks a file, and checks that it still exists.
func lockFile(file string, flags int) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDWR|flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	locked, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if named, err := os.Stat(file); err != nil || !os.SameFile(locked, named) {
		return nil, errors.Join(fs.ErrNotExist, err, f.Close())
	}
	return f, nil
}

// removeStale removes this user's directories of terminated ephemeral servers. It ignores failures.
func removeStale(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, temporaryPattern))
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || owner(info) != os.Geteuid() {
			continue
		}
		f, err := lockFile(filepath.Join(dir, holdFile), 0)
		if err != nil {
			continue // a server is using it, or it is something else
		}
		_ = os.RemoveAll(dir)
		_ = f.Close()
	}
}

// keepPrivate removes other users' access to a data directory, which contains keys. It rejects a directory in which
// others may have put files already, or may do so again.
func keepPrivate(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("cannot be used: %w", err)
	}
	mode, mine := info.Mode().Perm(), owner(info) == os.Geteuid()
	// the administrator may use directories of others, such as volumes
	if !mine && os.Geteuid() != 0 && owner(info) != 0 {
		return errors.New("belongs to another user, who could exchange the keys in it: choose another --data-dir")
	}
	if mode&0o002 != 0 {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("cannot be read: %w", err)
		}
		if len(entries) > 0 || !mine {
			return fmt.Errorf("may be written by every user (mode %#o), so its keys may have been replaced: "+
				"check its contents and make it private with chmod 700, or choose another --data-dir", mode)
		}
	}
	if !mine || mode&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(dir, info.Mode()&(fs.ModeSetgid|0o700)); err != nil {
		return fmt.Errorf("is open to other users (mode %#o): %w: choose another --data-dir", mode, err)
	}
	return nil
}

// owner returns the uid of a file's owner, -1 if it is unknown.
func owner(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
