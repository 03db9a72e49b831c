// Package datadir makes the directory in which a server keeps what outlives it, or one that is gone with it, and keeps
// other users out of both.
//
// It is used once, before anything else is opened.
package datadir

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// Prepare makes a data directory and returns it, with the function that removes what is temporary. "" is a directory
// for as long as the server lives. Prepare takes away other users' access to the content of the directory, and logs
// the files and directories that they may have changed.
func Prepare(name string, log *slog.Logger) (dir string, cleanup func(), err error) {
	if name == "" {
		return temporaryDir()
	}
	dir, err = filepath.Abs(name)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", nil,
			fmt.Errorf("data directory %s cannot be used: %w: name one that this user may write with --data-dir",
				name, err)
	}
	if err := keepPrivate(dir); err != nil {
		return "", nil, fmt.Errorf("data directory %s %w", dir, err)
	}
	for _, text := range Exposed(dir) {
		log.Warn("other users may exchange the data directory and its keys", "directory", dir, "because", text)
	}
	if err := keepContentPrivate(dir, log); err != nil {
		return "", nil, fmt.Errorf("data directory %s: %w", dir, err)
	}
	return dir, func() {}, nil
}

// temporaryPattern names the directories of ephemeral servers.
const temporaryPattern = "bowsprit-*"

// temporaryDir makes the directory of an ephemeral server, and removes those of servers that were killed.
func temporaryDir() (dir string, cleanup func(), err error) {
	removeStale(os.TempDir())
	for range 10 { // a server that starts at the same moment may take it for one that was left behind
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
