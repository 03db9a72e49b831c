// Package files reads and writes files in directories with foreign content: a directory that a user has unpacked,
// cloned or shares with others. It never waits for a pipe, reads a device, or follows a link out of the directory to
// write.
package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// MaxSize bounds a file that a command reads into memory, in bytes.
const MaxSize = 64 << 20

// Open opens a regular file of at most MaxSize bytes, or a link to one. Other files are an error: a pipe has no end
// before a writer opens it, and a device may have none.
func Open(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if err := readable(name, info); err != nil {
		return nil, err // opening a device may already have an effect
	}
	return checked(os.OpenFile(name, os.O_RDONLY|nonblock, 0))
}

// ReadAll returns the content of a file that a user named, at most MaxSize bytes. The file may be a pipe, as in
// "-f <(kustomize build)".
func ReadAll(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(Limit(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// Limit returns a reader of at most MaxSize bytes of a stream. Reading more is an error.
func Limit(r io.Reader) io.Reader { return &limited{r, MaxSize} }

type limited struct {
	io.Reader
	left int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		if n, err := l.Reader.Read(p[:min(1, len(p))]); n == 0 {
			return 0, err
		}
		return 0, fmt.Errorf("it has more than %d bytes: divide it", MaxSize)
	}
	n, err := l.Reader.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// checked returns an open file if it is regular. The file may have been replaced since the first check.
func checked(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = readable(f.Name(), info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func readable(name string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", name)
	case info.Size() > MaxSize:
		return fmt.Errorf("%s has %d bytes, more than the limit of %d", name, info.Size(), MaxSize)
	}
	return nil
}

// Dir is a directory for writing and removing files.
type Dir struct{ root *os.Root }

// OpenDir opens a directory. It makes a missing one.
func OpenDir(name string) (*Dir, error) {
	if err := os.MkdirAll(name, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Dir{root}, nil
}

// Close closes the directory.
func (d *Dir) Close() error { return d.root.Close() }

// FS returns the content of the directory. Its files are to be read by Read.
func (d *Dir) FS() fs.FS { return d.root.FS() }

// Read returns the content of a file, which is regular and no link.
func (d *Dir) Read(name string) ([]byte, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := readable(name, info); err != nil {
		return nil, err
	}
	f, err := checked(d.root.OpenFile(name, os.O_RDONLY|nonblock, 0))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// part is the name of a file while Write fills it.
const part = ".bowsprit-part"

// Write replaces a file, and makes its parent directories. name has slashes. A link in the place of the file is
// replaced and not followed. A parent directory that is a link out of the tree is an error.
func (d *Dir) Write(name string, data []byte, mode fs.FileMode) error {
	temporary := path.Join(path.Dir(name), part)
	if err := d.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	_ = d.root.Remove(temporary) // of a command that was killed
	f, err := d.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = d.root.Rename(temporary, name)
	}
	if err != nil {
		_ = d.root.Remove(temporary)
	}
	return err
}

// Remove removes a file, a link or an empty directory.
func (d *Dir) Remove(name string) error { return d.root.Remove(name) }
