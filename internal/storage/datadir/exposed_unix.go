//go:build unix

package datadir

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// Exposed returns a sentence for each directory above dir in which another user may rename or replace the entry that
// leads to dir. It trusts a group to which an administrator has given such a directory.
func Exposed(dir string) (sentences []string) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return sentences
		}
		switch by := owner(info); {
		case info.Mode()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0:
			sentences = append(sentences, fmt.Sprintf("every user may write %s (mode %#o without the sticky bit)", at,
				info.Mode().Perm()))
		case by != 0 && by != os.Geteuid() && os.Geteuid() != 0:
			sentences = append(sentences, fmt.Sprintf("%s belongs to another user (%d)", at, by))
		}
		if at == filepath.Dir(at) {
			return sentences
		}
	}
}

// keepContentPrivate removes other users' access to the content of a data directory, and to the targets of links at its
// top, such as an etcd/ on another disk. A group keeps its access to a volume, a directory that belongs to another
// user. An entry of a user other than this one, the directory's owner and root is an error.
func keepContentPrivate(dir string, log *slog.Logger) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		at := filepath.Join(dir, entry.Name())
		if entry.Type()&fs.ModeSymlink != 0 {
			if info, err := os.Stat(at); err != nil || !info.IsDir() {
				continue
			}
			if at, err = filepath.EvalSymlinks(at); err != nil {
				return err
			}
			for _, text := range Exposed(at) {
				log.Warn("other users can replace a part of the data directory", "directory", at, "because", text)
			}
		}
		if err := keepTreePrivate(at, dir, log); err != nil {
			return err
		}
	}
	return nil
}

// keepTreePrivate removes other users' access to a part of the data directory dir. It follows no links.
func keepTreePrivate(part, dir string, log *slog.Logger) error {
	whole, err := os.Stat(dir)
	if err != nil {
		return err
	}
	closed := fs.FileMode(0o077)
	if owner(whole) != os.Geteuid() {
		closed = 0o007
	}
	return filepath.WalkDir(part, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		by := owner(info)
		if by != os.Geteuid() && by != owner(whole) && by != 0 {
			return fmt.Errorf("%s belongs to another user (%d), who may change it: if the server has written it, "+
				"make it this user's with chown", at, by)
		}
		mode := info.Mode()
		if mode&closed == 0 || mode&fs.ModeSymlink != 0 || by != os.Geteuid() {
			return nil
		}
		if mode&0o002 != 0 {
			log.Warn("a part of the data directory was writable for every user and is now private; check its contents",
				"path", at, "mode", fmt.Sprintf("%#o", mode.Perm()))
		}
		return os.Chmod(at, mode&^closed)
	})
}
