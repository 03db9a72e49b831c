//go:build unix

package datadir

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

// TestDataDirIsPrivate checks that other users lose their access to a data directory, which contains keys, and that a
// directory in which they may have put files is rejected.
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
		got, _, err := Prepare(dir, slog.New(slog.DiscardHandler))
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

// Other users lose their access to all that a data directory holds, on another disk too. The log names the files that
// every user could write. Links below the top are not followed.
func TestContentIsPrivate(t *testing.T) {
	t.Parallel()
	dir, disk, foreign := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "file")
	for _, d := range []string{dir, disk} {
		if err := os.Chmod(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	modes := map[string]os.FileMode{
		"etcd": os.ModeDir | 0o777, "etcd/member": os.ModeDir | 0o755, "etcd/member/db": 0o666,
		"pki":        os.ModeDir | 0o770,
		"pki/ca.key": 0o640, "pki/ca.crt": 0o644, "kubeconfig": 0o604, "aggregation": os.ModeDir | 0o702,
		"snapshots/a": 0o620,
	}
	make := func(at string, mode os.FileMode) {
		t.Helper()
		err := os.MkdirAll(filepath.Dir(at), 0o700)
		if err == nil && mode.IsDir() {
			err = os.MkdirAll(at, 0o700)
		} else if err == nil {
			err = os.WriteFile(at, nil, 0o600)
		}
		if err == nil {
			err = os.Chmod(at, mode.Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range modes {
		make(filepath.Join(dir, name), mode)
	}
	make(filepath.Join(disk, "db"), 0o666)
	make(foreign, 0o666)
	for link, to := range map[string]string{
		"linked": disk, "file": foreign, "etcd/link": foreign, "gone": filepath.Join(dir, "nowhere"),
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	log := &logtest.Log{}
	if _, _, err := Prepare(dir, slog.New(slog.NewTextHandler(log, nil))); err != nil {
		t.Fatal(err)
	}
	for name, mode := range modes {
		at := filepath.Join(dir, name)
		info, err := os.Lstat(at)
		if err != nil || info.Mode().Perm() != mode.Perm()&0o700 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		if logged := strings.Contains(log.String(), "path="+at+" "); logged != (mode&0o002 != 0) {
			t.Errorf("%s: logged: %v", name, logged)
		}
	}
	for at, want := range map[string]os.FileMode{filepath.Join(disk, "db"): 0o600, foreign: 0o666} {
		if info, err := os.Stat(at); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", at, info.Mode(), err)
		}
	}
}

// A directory above the data directory that every user may write leads to a warning, unless it has the sticky bit.
func TestExposed(t *testing.T) {
	t.Parallel()
	for mode, want := range map[os.FileMode]bool{
		0o777: true, 0o703: true, 0o777 | os.ModeSticky: false, 0o755: false, 0o770: false, 0o700: false,
	} {
		top := t.TempDir()
		dir := filepath.Join(top, "some", "data")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(t.TempDir(), "link")
		if err := errors.Join(os.Chmod(top, mode), os.Symlink(dir, link)); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{dir, link} {
			log := &logtest.Log{}
			if _, _, err := Prepare(dir, slog.New(slog.NewTextHandler(log, nil))); err != nil {
				t.Fatal(err)
			}
			if logged := strings.Contains(log.String(), "every user may write "+top+" "); logged != want {
				t.Errorf("%s below a directory of mode %v: %q", dir, mode, log)
			}
		}
	}
}

// TestEntryOfAnotherUser checks that an entry of a user other than the server's, root and the directory's owner is
// rejected.
func TestEntryOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of other users")
	}
	for _, c := range []struct {
		dir, file int
		refused   bool
	}{{0, 0, false}, {0, 1234, true}, {1234, 1234, false}, {1234, 0, false}, {1234, 1235, true}} {
		dir := t.TempDir()
		file := filepath.Join(dir, "pki", "ca.key")
		err := errors.Join(os.Chmod(dir, 0o700), os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600),
			os.Chown(dir, c.dir, -1), os.Chown(file, c.file, -1))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = Prepare(dir, slog.New(slog.DiscardHandler))
		refused := err != nil && strings.Contains(err.Error(), file+" belongs to another user")
		if refused != c.refused {
			t.Errorf("directory of %d, file of %d: %v", c.dir, c.file, err)
		}
	}
}

// TestStaleDirectoriesAreRemoved checks that the next start removes the directories of killed servers, and only these.
func TestStaleDirectoriesAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	running, cleanup, err := Prepare("", nil)
	if err != nil {
		t.Fatal(err)
	}
	killed, other := filepath.Join(os.TempDir(), "bowsprit-1"), filepath.Join(os.TempDir(), "bowsprit-2")
	for _, dir := range []string{killed, other} {
		if err := os.MkdirAll(filepath.Join(dir, "etcd"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(killed, holdFile), nil, 0o600); err != nil { // not locked by any process
		t.Fatal(err)
	}
	next, cleanupNext, err := Prepare("", nil)
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

// TestUnusableDirectory checks that the error about a directory of another user names the directory and the remedy, not
// a temporary file. /proc takes no files, even from root.
func TestUnusableDirectory(t *testing.T) {
	t.Parallel()
	const refuses = "/proc/self/task"
	if _, err := os.Stat(refuses); err != nil {
		t.Skip("no /proc")
	}
	for _, dir := range []string{refuses, refuses + "/data"} {
		_, _, err := Prepare(dir, slog.New(slog.DiscardHandler))
		if err == nil || !strings.HasPrefix(err.Error(), "data directory "+dir+" cannot be used: ") ||
			!strings.Contains(err.Error(), "--data-dir") || strings.Contains(err.Error(), ".trial-") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	dir := t.TempDir()
	if err := tryWrite(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
