package connect

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/instance"
)

// DefaultDataDir returns the data directory of "bowsprit serve" without flags.
func DefaultDataDir() string { return instance.DefaultDataDir() }

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
