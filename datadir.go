package bowsprit

import (
	"fmt"
	"os"
	"path/filepath"
)

// prepareDataDir makes the data directory and returns it, with the function that removes what is temporary.
func (c Config) prepareDataDir() (dir string, cleanup func(), err error) {
	if c.DataDir == "" {
		return temporaryDir()
	}
	dir, err = filepath.Abs(c.DataDir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", nil,
			fmt.Errorf("data directory %s cannot be used: %w: name one that this user may write with --data-dir",
				c.DataDir, err)
	}
	if err := keepPrivate(dir); err != nil {
		return "", nil, fmt.Errorf("data directory %s %w", dir, err)
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
