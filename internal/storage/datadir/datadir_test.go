//go:build unix

package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Data directories hold keys: other users lose what access they have, and a directory in which they may have put
// something is refused.
func TestDataDirIsPrivate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mode      os.FileMode
		holds     bool // a file
		wantError string
	}{
		"private":                   {mode: 0o700, holds: true},
		"to be read by others":      {mode: 0o755, holds: true},
		"to be written by a group":  {mode: 0o770, holds: true},
		"to be written by all, new": {mode: 0o777},
		"to be written by all":      {mode: 0o777, holds: true, wantError: "may be written by every user (mode 0777)"},
		"a directory like the tmp's": {
			mode: 0o777 | os.ModeSticky, holds: true, wantError: "chmod 700, or choose another --data-dir",
		},
	} {
		dir := t.TempDir()
		if test.holds {
			if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, test.mode); err != nil {
			t.Fatal(err)
		}
		got, _, err := Prepare(dir)
		info, statErr := os.Stat(dir)
		if statErr != nil {
			t.Fatal(statErr)
		}
		switch {
		case test.wantError != "":
			if err == nil || !strings.Contains(err.Error(), test.wantError) || info.Mode().Perm() != test.mode.Perm() {
				t.Errorf("%s: mode %s, error %v", name, info.Mode(), err)
			}
		case err != nil || got != dir || info.Mode().Perm() != 0o700:
			t.Errorf("%s: mode %s, directory %q, error %v", name, info.Mode(), got, err)
		}
	}
}

// The directories of servers that were killed go at the next start; those of servers that run stay, and what is not
// ours.
func TestStaleDirectoriesAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	running, cleanup, err := Prepare("")
	if err != nil {
		t.Fatal(err)
	}
	killed, other := filepath.Join(os.TempDir(), "bowsprit-1"), filepath.Join(os.TempDir(), "bowsprit-2")
	for _, dir := range []string{killed, other} {
		if err := os.MkdirAll(filepath.Join(dir, "etcd"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(killed, holdFile), nil, 0o600); err != nil { // and no process has it locked
		t.Fatal(err)
	}
	next, cleanupNext, err := Prepare("")
	if err != nil {
		t.Fatal(err)
	}
	there := func(dir string) bool {
		_, err := os.Stat(dir)
		return err == nil
	}
	if there(killed) || !there(running) || !there(other) || !there(next) {
		t.Errorf("of a killed server %v, of one that runs %v, of another program %v, of this server %v",
			there(killed), there(running), there(other), there(next))
	}
	cleanup()
	cleanupNext()
	if there(running) || there(next) {
		t.Error("a directory outlives its server")
	}
}
