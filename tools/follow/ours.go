package main

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxOurs is the number of our files that the report names for a change. maxFiles is the number of files above which a
// word finds nothing: it stands for too much.
const (
	maxOurs  = 4
	maxFiles = 12
)

// ours is an index of our sources: the files with a word, and the number of its occurrences in each.
type ours struct {
	root  string
	files map[string]map[string]int
}

// word is a name in a source file. Parts of a name in camel case are no words.
var word = regexp.MustCompile(`[A-Za-z][A-Za-z0-9_-]*`)

// readOurs indexes the sources and tables of the server: Go files without tests, and text files. It omits generated
// schemas, which have every name.
func readOurs(root string) (*ours, error) {
	o := &ours{root: root, files: map[string]map[string]int{}}
	for _, folder := range []string{"internal", "cmd", "test/conformance/baseline"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				if d != nil && slices.Contains([]string{"testdata", "lint", "schemas"}, d.Name()) {
					return filepath.SkipDir
				}
				return err
			}
			extension := filepath.Ext(path)
			known := slices.Contains([]string{".go", ".txt", ".tsv", ".jsonl"}, extension)
			if !known || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			o.add(filepath.ToSlash(name), string(data))
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	return o, nil
}

func (o *ours) add(file, text string) {
	for _, w := range word.FindAllString(text, -1) {
		if o.files[w] == nil {
			o.files[w] = map[string]int{}
		}
		o.files[w][file]++
	}
}

// find returns the files below a folder with the first word that few of them have, the file with most occurrences
// first, and the number of further files.
func (o *ours) find(words []string, below string) (files []string, more int) {
	for _, w := range words {
		found := o.files[w]
		files = files[:0]
		for file := range found {
			if strings.HasPrefix(file, below) {
				files = append(files, file)
			}
		}
		if len(files) == 0 || len(files) > maxFiles {
			continue
		}
		slices.SortFunc(files, func(x, y string) int {
			return cmp.Or(found[y]-found[x], strings.Compare(x, y))
		})
		more = max(0, len(files)-maxOurs)
		return files[:len(files)-more], more
	}
	return nil, 0
}

// folders are our folders of Kubernetes' groups that have another name.
var folders = map[string]string{
	"admissionregistration": "admission", "authentication": "auth", "authorization": "auth", "networking": "network",
	"discovery": "network", "events": "core", "meta": "rule", "api": "pod",
}

// kinds returns our folder of a group's kinds.
func (o *ours) kinds(group string) string {
	if folder := folders[group]; folder != "" {
		group = folder
	}
	if folder := "internal/kinds/" + group; o.existing(folder) != "" {
		return folder
	}
	return "new: internal/kinds/" + group
}

// existing returns a path of ours if it exists.
func (o *ours) existing(path string) string {
	if _, err := os.Stat(filepath.Join(o.root, path)); err != nil {
		return ""
	}
	return path
}
