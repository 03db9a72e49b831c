package stage

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Read returns the Stages in YAML or JSON files and in folders of such files, sorted by name. paths is a list as in the
// environment variable PATH. A folder may contain documents of other groups, such as a kustomization.yaml; a named file
// may not. The error joins all problems.
func Read(paths string) ([]*Stage, error) {
	var out []*Stage
	var errs []error
	from := map[string]string{}
	for _, path := range filepath.SplitList(paths) {
		files, strict, err := filesAt(path)
		found := len(out)
		for _, file := range files {
			stages, err := readFile(file, strict)
			if err != nil {
				errs = append(errs, err)
			}
			for _, s := range stages {
				if other, twice := from[s.Name]; twice {
					errs = append(errs, fmt.Errorf("%s: stage %s is in %s too", file, s.Name, other))
				}
				from[s.Name] = file
			}
			out = append(out, stages...)
		}
		switch {
		case err != nil:
			errs = append(errs, err)
		case len(out) == found && len(errs) == 0:
			errs = append(errs, fmt.Errorf("%s: no Stage is there", path))
		}
	}
	slices.SortFunc(out, func(a, b *Stage) int { return strings.Compare(a.Name, b.Name) })
	_, refused := Lives(out)
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		errs = append(errs, fmt.Errorf("%s: stage %s: %w", from[name], name, refused[name]))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// filesAt returns the files at a path; strict is true if path itself is a file.
func filesAt(path string) (files []string, strict bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, false, err
	}
	if !info.IsDir() {
		return []string{path}, true, nil
	}
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, ext) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, false, err
}

func readFile(file string, strict bool) ([]*Stage, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*Stage
	var errs []error
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ {
		one, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, errors.Join(errs...)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		s, err := parseYAML(one, strict)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s, document %d: %w", file, n, err))
		} else if s != nil {
			out = append(out, s)
		}
	}
}

// parseYAML reads a document. It returns nil for an empty document and, unless strict is set, for one of another group.
func parseYAML(data []byte, strict bool) (*Stage, error) {
	data, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if string(data) == "null" {
		return nil, nil
	}
	if err := yaml.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	if !strict && !strings.HasPrefix(head.APIVersion, Group+"/") {
		return nil, nil
	}
	s, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("stage %q: %w", head.Metadata.Name, err)
	}
	return s, nil
}
