// Package manifest reads objects from files of YAML and JSON, and reports every unreadable part with its file, line and
// path. A problem in one document does not affect the others.
package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/files"
)

// Problem is an unreadable part of a file.
type Problem struct {
	File string
	// Line is the number of the line in the file, or 0 if the problem concerns the whole file.
	Line int
	// Path is the path of the field, such as "spec.versions[0].name", or "".
	Path string
	Text string
}

// Error implements error.
func (p *Problem) Error() string {
	text := p.Text
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	if p.Line == 0 {
		return p.File + ": " + text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, text)
}

// Set is the content of files.
type Set struct {
	Documents []Document
	Problems  []error // each a *Problem
}

// Err returns all problems, or nil.
func (s *Set) Err() error { return errors.Join(s.Problems...) }

// extensions are the extensions of files to read from directories.
var extensions = []string{".yaml", ".yml", ".json"}

// Load reads files, all YAML and JSON files of directories, and stdin for "-". It skips directories below these with
// names that begin with a dot. An error means that a path does not exist or cannot be listed.
func Load(paths []string, stdin io.Reader) (*Set, error) {
	s := &Set{}
	for _, path := range paths {
		if path == "-" {
			s.Read("stdin", stdin)
			continue
		}
		if err := s.load(path); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Set) load(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist: name a file or directory, or - for stdin: %w", path, fs.ErrNotExist)
	}
	return filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		named := name == path // with any extension
		switch {
		case err != nil && named:
			return err
		case err != nil:
			s.fail(name, err)
			return nil
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && !named:
			return fs.SkipDir
		case e.IsDir() || !named && !slices.Contains(extensions, filepath.Ext(name)):
			return nil
		}
		open := files.Open
		if named { // such as a pipe of the shell
			open = os.Open
		}
		file, err := open(name)
		if err != nil {
			s.fail(name, err)
			return nil
		}
		defer file.Close()
		s.Read(name, file)
		return nil
	})
}

// fail adds a problem with a whole file.
func (s *Set) fail(file string, err error) {
	var at *fs.PathError
	text := err.Error()
	if errors.As(err, &at) {
		text = at.Err.Error()
	}
	s.Problems = append(s.Problems, &Problem{File: file, Text: strings.TrimPrefix(text, file+" ")})
}
