package embedded

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// startError explains why etcd did not start, and the remedy. etcd gives its reasons as text only.
func startError(c Config, err error) error {
	mentions := func(text string) bool { return strings.Contains(err.Error(), text) }
	switch {
	case c.ListenClientURL != "" && mentions("listen "):
		return fmt.Errorf(
			"store: embedded etcd cannot listen on %s: %w; choose another --etcd-listen-client-url or stop who uses it",
			c.ListenClientURL, err)
	case mentions("cannot allocate memory"):
		return fmt.Errorf(
			"store: there is not enough memory to open data directory %s: %w; raise the limit of memory or of address "+
				"space (ulimit -v), nothing is wrong with the data", c.Dir, err)
	case mentions("no space left on device"), mentions("disk quota exceeded"):
		return fmt.Errorf(
			"store: there is no space left for data directory %s: %w; make room, nothing is wrong with the data",
			c.Dir, err)
	case mentions("permission denied"), mentions("read-only file system"), mentions("too many open files"):
		return fmt.Errorf("store: data directory %s cannot be used: %w; correct that, nothing is wrong with the data",
			c.Dir, err)
	case errors.Is(err, errNoLeader):
		return fmt.Errorf(
			"store: embedded etcd in %s does not start: %w; if the machine is not overloaded, the data directory may be "+
				"damaged: restore it from a backup", c.Dir, err)
	}
	if damaged(err) {
		return fmt.Errorf(
			"store: data directory %s is damaged or not readable: %w; restore it from a backup, or move it away to "+
				"start empty", c.Dir, err)
	}
	return fmt.Errorf(
		"store: embedded etcd in %s does not start: %w; correct the cause. Nothing shows damage: keep the data directory "+
			"as it is", c.Dir, err)
}

// damaged reports whether an error proves that files are damaged: checkFiles found the damage, or etcd's text mentions
// its log (wal, snap), its database (bbolt) or the decoder of their records (proto). An error of the operating system
// is no proof, with one exception: a directory in place of a file.
func damaged(err error) bool {
	var system syscall.Errno
	if errors.As(err, &system) && !errors.Is(err, syscall.EISDIR) {
		return false
	}
	if errors.As(err, new(damageError)) {
		return true
	}
	return slices.ContainsFunc([]string{
		"crc mismatch", "checksum error", "unexpected EOF", "invalid database", "file size too small", "wal: ",
		"walpb: ", "snap: ", "snappb: ", "proto: ", "invalid freelist", "page ", "max entry size limit exceeded", "is a directory",
		"cannot make sense of its files", "failed to find database snapshot file",
	}, func(sign string) bool { return strings.Contains(err.Error(), sign) })
}

// damageError is damage found by checkFiles.
type damageError struct{ error }

func (e damageError) Unwrap() error { return e.error }
