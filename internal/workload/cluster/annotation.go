package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// ListIn reads a list, YAML or JSON, in an annotation. noun and fields name the elements and their fields in errors.
// The list has at most most elements; its size is bounded by the size of annotations.
func ListIn[T any](text, noun, fields string, most int) (all []T, err error) {
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil && err != io.EOF {
		return nil, fmt.Errorf("is no list of %s with %s: %w", noun, fields, err)
	}
	if len(all) > most {
		return nil, fmt.Errorf("has %d %s, more than %d", len(all), noun, most)
	}
	return all, nil
}
