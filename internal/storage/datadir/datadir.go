// Package datadir creates the data directory of a server, or a temporary one, and denies other users access to both.
//
// It is used once, before anything else is opened.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// Prepare creates a data directory and returns it, with a function that removes a temporary one. "" means a temporary
// directory for the lifetime of the server. Prepare removes other users' access to the content of the directory, and
// logs the files and directories that they may have changed.
func Prepare(name string, log *slog.Logger) (dir string, cleanup func(), err error) {
	if name == "" {
		return temporaryDir()
	}
	dir, err = filepath.Abs(name)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = tryWrite(dir)
	}
	if err != nil {
		return "", nil, fmt.Errorf("data directory %s cannot be used: %w: start the server as the owner of the directory, or "+
			"name one that this user may write with --data-dir", name, cause(err))
	}
	if err := keepPrivate(dir); err != nil {
		return "", nil, fmt.Errorf("data directory %s %w", dir, err)
	}
	for _, text := range Exposed(dir) {
		log.Warn("other users can replace the data directory and its keys", "directory", dir, "because", text)
	}
	if err := keepContentPrivate(dir, log); err != nil {
		return "", nil, fmt.Errorf("data directory %s: %w", dir, err)
	}
	return dir, func() {}, nil
}

// tryWrite returns an error unless this process may list the directory and write files in it.
func tryWrite(dir string) error {
	if _, err := os.ReadDir(dir); err != nil {
		return err
	}
	trial, err := os.CreateTemp(dir, ".trial-")
	if err != nil {
		return err
	}
	return errors.Join(trial.Close(), os.Remove(trial.Name()))
}

// cause returns the reason of an error about a file, without the file: it may be a temporary one.
func cause(err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// temporaryPattern names the directories of ephemeral servers.
const temporaryPattern = "bowsprit-*"

// temporaryDir creates the directory of an ephemeral server, and removes the directories of killed servers.
func temporaryDir() (dir string, cleanup func(), err error) {
	removeStale(os.TempDir())
	for range 10 { // another starting server may mistake it for an abandoned one
		dir, err = os.MkdirTemp("", temporaryPattern)
		if err != nil {
			return "", nil, fmt.Errorf("temporary directory: %w: choose another one with the variable TMPDIR", err)
		}
		var release func()
		if release, err = holdDir(dir); err == nil {
			return dir, func() { os.RemoveAll(dir); release() }, nil
		}
		os.RemoveAll(dir)
	}
	return "", nil, fmt.Errorf("temporary directory: %w", err)
}
