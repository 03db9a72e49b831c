package instance

import (
	"os"
	"path/filepath"
)

// DefaultDataDir returns the value of BOWSPRIT_DATA_DIR, else <XDG data home>/bowsprit, or "" without XDG_DATA_HOME and
// HOME. A directory for temporary files is no place for keys, because another user may have made it.
func DefaultDataDir() string {
	if dir := os.Getenv("BOWSPRIT_DATA_DIR"); dir != "" {
		return dir
	}
	if base := dataHome(); base != "" {
		return filepath.Join(base, "bowsprit")
	}
	return ""
}

// dataHome returns the XDG data home, or "" without XDG_DATA_HOME and HOME.
func dataHome() string {
	base := os.Getenv("XDG_DATA_HOME")
	if filepath.IsAbs(base) { // the XDG base directory specification requires to ignore any other
		return base
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, ".local", "share")
}
