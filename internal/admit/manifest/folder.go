package manifest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// maxFolder is the maximum size of all files of a folder together, in bytes. It is far above the size of the largest
// policies in use, and it bounds the work of each check of the folder.
const maxFolder = 16 << 20

// document is one YAML or JSON document of a file.
type document struct {
	file string // with its folder
	text []byte
}

// readFolder returns the documents of a folder's files in the order of the files' names, and a hash of the files, "" if
// all are empty. It ignores subfolders, and files of other formats.
func readFolder(folder string) (documents []document, hash string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, "", fmt.Errorf("failed to read manifest directory %q: %w", folder, err)
	}
	sum, left := sha256.New(), int64(maxFolder)
	empty := true
	for _, entry := range entries {
		extension := strings.ToLower(filepath.Ext(entry.Name()))
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, extension) {
			continue
		}
		file := filepath.Join(folder, entry.Name())
		data, err := readFile(file, left)
		if err != nil {
			return nil, "", fmt.Errorf("failed to read file %q: %w", file, err)
		}
		if len(data) == 0 {
			continue
		}
		left -= int64(len(data))
		empty = false
		sum.Write(data)
		sum.Write([]byte{0}) // as in kube-apiserver: the hash is a label of a metric
		texts, err := split(data)
		if err != nil {
			return nil, "", fmt.Errorf("failed to split YAML documents in file %q: %w", file, err)
		}
		for _, text := range texts {
			documents = append(documents, document{file, text})
		}
	}
	if empty {
		return nil, "", nil
	}
	return documents, fmt.Sprintf("sha256:%x", sum.Sum(nil)), nil
}

// readFile reads a regular file of at most limit bytes. Other files, such as pipes, may never end.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("the manifests of the folder are larger than %d MiB together: remove some", maxFolder>>20)
	}
	return data, err
}

// split returns the documents of a file, without empty ones.
func split(data []byte) (texts [][]byte, err error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return texts, nil
		}
		if err != nil {
			return nil, err
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			texts = append(texts, text)
		}
	}
}
