// Package archive implements "bowsprit backup" and "bowsprit restore": all data of a server in one file, and back.
//
// The file is a tar archive of manifest.json, which lists the files and their checksums, etcd.db, the snapshot of
// "bowsprit snapshot", and the files below <data-dir>/pki. It appears complete and checked, or not at all. This code
// runs once in a process; nothing is safe for concurrent use.
package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/storage/format"
)

// layout is the version of the layout that backup writes, and the latest that restore reads.
const layout = 1

const (
	manifestName = "manifest.json"
	databaseName = "etcd.db"
	pkiFolder    = "pki"
)

// maxSmall bounds files that are read into memory: the manifest, keys and certificates.
const maxSmall = 1 << 20

// Manifest lists the contents of an archive.
type Manifest struct {
	Format   int       `json:"format"`
	Version  string    `json:"version"` // of the program that made it
	Created  time.Time `json:"created"`
	Revision int64     `json:"revision"`
	Keys     int       `json:"keys"`
	Files    []File    `json:"files"` // in the order of the archive
	// DataFormat is the format of the data (format.Current), or 0 for data of earlier versions, which do not record it.
	DataFormat int `json:"dataFormat,omitempty"`
}

// File is one file of an archive.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// certificates counts the files of the server's keys and certificates.
func (m *Manifest) certificates() (n int) {
	for _, f := range m.Files {
		if strings.HasPrefix(f.Name, pkiFolder+"/") {
			n++
		}
	}
	return n
}

// bytes returns how large all files are.
func (m *Manifest) bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// keyFiles are the files below pki/ that a server makes. No other file of that folder is in a backup.
var keyFiles = append(pki.Files(), serviceaccount.OwnKeyFile)

// validate refuses manifests that backup never writes: with names that lead elsewhere, or without a database.
func (m *Manifest) validate() error {
	if m.Format > layout {
		return fmt.Errorf("bowsprit %s wrote it in format %d, and this version reads formats up to %d: use bowsprit %s or later",
			m.Version, m.Format, layout, m.Version)
	}
	if m.DataFormat > format.Current {
		return fmt.Errorf("its data has format %d, written by bowsprit %s, and this version reads formats up to %d: "+
			"use that version or a later one", m.DataFormat, m.Version, format.Current)
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		folder, base := path.Split(f.Name)
		inPKI := folder == pkiFolder+"/" && slices.Contains(keyFiles, base)
		if f.Name != databaseName && !inPKI || seen[f.Name] || f.Size < 0 || inPKI && f.Size > maxSmall {
			return fmt.Errorf("it contains the file %q, which does not belong in a backup", f.Name)
		}
		seen[f.Name] = true
	}
	if !seen[databaseName] {
		return errors.New("it contains no database")
	}
	return nil
}

// errNotArchive reports a file of another kind.
var errNotArchive = errors.New("it is not a bowsprit backup")

// write writes the files of the manifest below dir to out.
func write(out io.Writer, m *Manifest, dir string, p *progress) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	t := tar.NewWriter(out)
	if err := add(t, manifestName, int64(len(text)), m.Created, bytes.NewReader(text)); err != nil {
		return err
	}
	for _, f := range m.Files {
		in, err := os.Open(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil {
			return err
		}
		err = add(t, f.Name, f.Size, m.Created, p.reader(in))
		if err = errors.Join(err, in.Close()); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return t.Close()
}

func add(t *tar.Writer, name string, size int64, at time.Time, from io.Reader) error {
	head := &tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: at, Format: tar.FormatPAX}
	if err := t.WriteHeader(head); err != nil {
		return err
	}
	_, err := io.Copy(t, from)
	return err
}

// read reads an archive from end to end, checks all of it, and passes each file to take, which need not read it. The
// data of take is valid only if read returns no error.
func read(in io.Reader, p *progress, take func(f File, from io.Reader) error) (*Manifest, error) {
	t := tar.NewReader(in)
	head, err := t.Next()
	if err != nil || head.Name != manifestName || head.Size > maxSmall {
		return nil, errNotArchive
	}
	m := &Manifest{}
	if err := json.NewDecoder(t).Decode(m); err != nil {
		return nil, errNotArchive
	}
	if err := m.validate(); err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		head, err := t.Next()
		if err != nil {
			return nil, fmt.Errorf("it is damaged: it ends before %s", f.Name)
		}
		if head.Name != f.Name || head.Size != f.Size || head.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("it is damaged: found %q instead of %s", head.Name, f.Name)
		}
		sum := sha256.New()
		from := io.TeeReader(p.reader(t), sum)
		err = take(f, from)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("it is damaged: it ends in the middle of %s", f.Name)
		case err != nil:
			return nil, err
		}
		if _, err := io.Copy(io.Discard, from); err != nil {
			return nil, fmt.Errorf("it is damaged: in the middle of %s: %w", f.Name, err)
		}
		if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
			return nil, fmt.Errorf("it is damaged: the checksum of %s is wrong", f.Name)
		}
	}
	if _, err := t.Next(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is damaged: it contains more files than its manifest lists")
	}
	return m, nil
}

// check reads the archive of that name.
func check(name string, p *progress) (*Manifest, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := read(f, p, nothing)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// nothing reads no file.
func nothing(File, io.Reader) error { return nil }

// describe returns the files below dir that belong into an archive, with their checksums: the database first.
func describe(dir string) ([]File, error) {
	names := []string{databaseName}
	keys, err := os.ReadDir(filepath.Join(dir, pkiFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, k := range keys {
		names = append(names, pkiFolder+"/"+k.Name())
	}
	slices.Sort(names[1:])
	var files []File
	for _, name := range names {
		f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		sum := sha256.New()
		size, err := io.Copy(sum, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		files = append(files, File{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	}
	return files, nil
}
