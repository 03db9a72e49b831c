package connect

import (
	"errors"
	"os"
	"path/filepath"
)

// DefaultDataDir returns the value of BOWSPRIT_DATA_DIR, else <XDG data home>/bowsprit, or "" without XDG_DATA_HOME and
// HOME. A directory for temporary files is no place for keys, because another user may have made it.
func DefaultDataDir() string {
	if dir := os.Getenv("BOWSPRIT_DATA_DIR"); dir != "" {
		return dir
	}
	base := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(base) { // the XDG base directory specification requires to ignore it
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

// Exists reports whether the file exists.
func Exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
