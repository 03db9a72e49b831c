package audit

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// fileOptions configures the size of a log and the retention of its older files.
type fileOptions struct {
	path       string
	maxSize    int64 // bytes; 0 means unlimited
	maxAge     int   // days; 0 means forever
	maxBackups int   // 0 means all
	compress   bool
	now        func() time.Time // nil is time.Now
}

// file is a log file with rotation. Rotated files have kube-apiserver's names (audit-2026-11-22T16-00-00.000.log). A
// goroutine compresses and deletes them; Close waits for it. Only one goroutine at a time calls Write and Close.
type file struct {
	o    fileOptions
	f    *os.File
	size int64

	tidying sync.Mutex // serializes the tidying of the folder
	tidiers sync.WaitGroup
}

// stampForm is the time in the name of a file that was put aside.
const stampForm = "2006-01-02T15-04-05.000"

func openFile(o fileOptions) (*file, error) {
	if o.now == nil {
		o.now = time.Now
	}
	if err := os.MkdirAll(filepath.Dir(o.path), 0o700); err != nil {
		return nil, err
	}
	f := &file{o: o}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *file) open() (err error) {
	// Only the server's user may read it: at higher levels events contain the data of secrets.
	f.f, err = os.OpenFile(f.o.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.f.Stat()
	if err != nil {
		return err
	}
	f.size = info.Size()
	return nil
}

// Write writes a line. It removes a partially written line, so that each line is an event.
func (f *file) Write(line []byte) (int, error) {
	if max := f.o.maxSize; max > 0 {
		if int64(len(line)) > max {
			return 0, fmt.Errorf("write length %d exceeds maximum file size %d", len(line), max)
		}
		if f.size > 0 && f.size+int64(len(line)) > max {
			if err := f.rotate(); err != nil {
				return 0, err
			}
		}
	}
	if f.f == nil { // a rotation failed half way
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	n, err := f.f.Write(line)
	if err != nil && n > 0 && f.f.Truncate(f.size) == nil {
		n = 0
	}
	f.size += int64(n)
	return n, err
}

// Close closes the file and waits for the tidying of older ones.
func (f *file) Close() error {
	f.tidiers.Wait()
	if f.f == nil {
		return nil
	}
	return f.f.Close()
}

// rotate puts the file aside and begins another.
func (f *file) rotate() error {
	if f.f != nil {
		if err := f.f.Close(); err != nil {
			return err
		}
		f.f = nil
	}
	if err := os.Rename(f.o.path, f.aside()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.open(); err != nil {
		return err
	}
	f.tidiers.Go(f.tidy)
	return nil
}

// aside returns an unused name for the full file.
func (f *file) aside() string {
	before, ext := f.nameParts()
	at := f.o.now().UTC()
	for {
		name := before + at.Format(stampForm) + ext
		_, plain := os.Lstat(name)
		_, compressed := os.Lstat(name + ".gz")
		if plain != nil && compressed != nil {
			return name
		}
		at = at.Add(time.Millisecond)
	}
}

// nameParts returns the parts before and after the time in the names of rotated files.
func (f *file) nameParts() (before, ext string) {
	ext = filepath.Ext(f.o.path)
	return strings.TrimSuffix(f.o.path, ext) + "-", ext
}

// tidy deletes rotated files that are too old or too many, and compresses the others. After an error the next rotation
// retries.
func (f *file) tidy() {
	f.tidying.Lock()
	defer f.tidying.Unlock()
	oldest := time.Time{}
	if f.o.maxAge > 0 {
		oldest = f.o.now().Add(-time.Duration(f.o.maxAge) * 24 * time.Hour)
	}
	for i, old := range f.older() {
		switch {
		case f.o.maxBackups > 0 && i >= f.o.maxBackups, old.at.Before(oldest):
			_ = os.Remove(old.path)
		case f.o.compress && !strings.HasSuffix(old.path, ".gz"):
			_ = compress(old.path)
		}
	}
}

// older is a file that was put aside.
type older struct {
	path string
	at   time.Time
}

// older returns the files that were put aside, the newest first.
func (f *file) older() []older {
	before, ext := f.nameParts()
	entries, err := os.ReadDir(filepath.Dir(f.o.path))
	if err != nil {
		return nil
	}
	var all []older
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(f.o.path), e.Name())
		stamp, ok := strings.CutPrefix(path, before)
		if !ok {
			continue
		}
		if stamp, ok = strings.CutSuffix(strings.TrimSuffix(stamp, ".gz"), ext); !ok {
			continue
		}
		if at, err := time.Parse(stampForm, stamp); err == nil {
			all = append(all, older{path, at})
		}
	}
	slices.SortFunc(all, func(a, b older) int { return b.at.Compare(a.at) })
	return all
}

// compress replaces a file by a compressed one.
func compress(path string) (err error) {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(path+".gz", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, in)
	if err = errors.Join(err, z.Close(), out.Close()); err != nil {
		_ = os.Remove(path + ".gz")
		return err
	}
	return os.Remove(path)
}
