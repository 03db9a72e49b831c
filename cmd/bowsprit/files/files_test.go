//go:build unix

package files

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// unreadable makes everything at which a reader could wait or never end, by name, in a new directory.
func unreadable(t *testing.T) (dir string, names []string) {
	t.Helper()
	dir = t.TempDir()
	at := func(name string) string {
		names = append(names, name)
		return filepath.Join(dir, name)
	}
	err := errors.Join(
		syscall.Mkfifo(at("pipe"), 0o600), os.Symlink("pipe", at("link to a pipe")),
		os.Symlink("/dev/zero", at("link to zero")), os.Symlink("/dev/tty", at("link to a terminal")),
		os.Mkdir(at("directory"), 0o700), os.Symlink("directory", at("link to a directory")),
		os.Symlink("itself", at("itself")), os.Symlink("nowhere", at("link to nothing")),
		os.WriteFile(at("large"), nil, 0o600), os.Truncate(filepath.Join(dir, "large"), MaxSize+1),
	)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { socket.Close() })
	return dir, names
}

// TestOpen checks that only regular files and links to them are opened, and that Open never waits.
func TestOpen(t *testing.T) {
	t.Parallel()
	dir, names := unreadable(t)
	for _, name := range names {
		if f, err := Open(filepath.Join(dir, name)); err == nil {
			f.Close()
			t.Errorf("%s is opened", name)
		}
	}
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, link} {
		f, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(f); string(text) != "text" || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		f.Close()
	}
}

// TestWrite checks that a file replaces everything of its name except a directory, and that Write never writes outside
// the tree.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir, names := unreadable(t)
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	err := errors.Join(
		os.WriteFile(victim, []byte("kept"), 0o600), os.Symlink(victim, filepath.Join(dir, "absolute")),
		os.Symlink(outside, filepath.Join(dir, "out")), os.Symlink(victim, filepath.Join(dir, part)),
		os.Symlink("../"+filepath.Base(outside)+"/victim", filepath.Join(dir, "relative")),
	)
	if err != nil {
		t.Fatal(err)
	}
	to, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	for _, name := range append(names, "absolute", "relative", "new", "a/b/c") {
		if name == "large" {
			continue
		}
		if _, err := to.Read(name); err == nil {
			t.Errorf("%s is read", name)
		}
		err := to.Write(name, []byte("text"), 0o640)
		if name == "directory" {
			if err == nil {
				t.Error("a directory is replaced")
			}
			continue
		}
		info, statErr := os.Lstat(filepath.Join(dir, name))
		if err != nil || statErr != nil || info.Mode() != 0o640 {
			t.Fatalf("%s: %v, %v", name, err, statErr)
		}
		if text, err := to.Read(name); err != nil || string(text) != "text" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	for _, name := range []string{"out/new", "out/victim", "../x", "/etc/x", "a/../../x", "out/a/b"} {
		if err := to.Write(name, []byte("text"), 0o600); err == nil {
			t.Errorf("%s is written", name)
		}
	}
	var left []string
	err = filepath.WalkDir(outside, func(name string, _ fs.DirEntry, err error) error {
		left = append(left, filepath.Base(name))
		return err
	})
	text, readErr := os.ReadFile(victim)
	if err := errors.Join(err, readErr); err != nil || string(text) != "kept" || len(left) != 2 {
		t.Errorf("outside are %q, the victim has %q, %v", strings.Join(left, " "), text, err)
	}
}

// TestReadAll checks that a pipe is read to its end, and that an endless device is an error.
func TestReadAll(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() { written <- os.WriteFile(pipe, []byte("text"), 0o600) }()
	if data, err := ReadAll(pipe); err != nil || string(data) != "text" {
		t.Errorf("%q, %v", data, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	if data, err := ReadAll("/dev/zero"); err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes") {
		t.Errorf("%d bytes of zeros, %v", len(data), err)
	}
}

// TestLimit reads streams of the limit and one byte more.
func TestLimit(t *testing.T) {
	t.Parallel()
	for over, fails := range map[string]bool{"": false, "x": true} {
		r := &limited{strings.NewReader("four" + over), 4}
		if data, err := io.ReadAll(r); string(data) != "four" || (err != nil) != fails {
			t.Errorf("%q, %v", data, err)
		}
	}
}
