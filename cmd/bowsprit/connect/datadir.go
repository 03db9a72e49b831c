package connect

import (
	"errors"
	"os"
	"path/filepath"
)

// DefaultDataDir is what BOWSPRIT_DATA_DIR says, else <XDG data home>/bowsprit, "" if there is neither XDG_DATA_HOME
// nor HOME. A directory for temporary files is no place for keys: others may have made it before.
func DefaultDataDir() string {
	if dir := os.Getenv("BOWSPRIT_DATA_DIR"); dir != "" {
		return dir
	}
	base := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(base) { // which the XDG base directory specification wants to be ignored
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) {
			return ""
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "bowsprit")
}

// KubeconfigOf returns the kubeconfig that the server with the data directory writes.
func KubeconfigOf(dataDir string) (string, error) {
	if dataDir == "" {
		return "", errors.New("neither XDG_DATA_HOME nor HOME is set: name the server's directory with --data-dir")
	}
	return filepath.Join(dataDir, "kubeconfig"), nil
}

// Exists reports whether there is a file of the name.
func Exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
