package codec

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// ToYAML returns the YAML that kube-apiserver and kubectl write for a JSON document: fields sorted, no document mark.
func ToYAML(json []byte) ([]byte, error) {
	return yaml.JSONToYAML(json)
}

// maxDirectives bounds the directives (%TAG) of a YAML document. The library compares each with all before it; so many
// take about a second.
const maxDirectives = 8000

// checkYAML returns an error for a YAML document that takes the library too long.
func checkYAML(doc []byte) error {
	n := 0
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} { // of lines
		n += bytes.Count(doc, []byte(end+"%"))
	}
	if n > maxDirectives {
		return fmt.Errorf("yaml: the document has %d directives, at most %d are read", n, maxDirectives)
	}
	return nil
}

// FromYAML returns the JSON of a YAML document.
func FromYAML(doc []byte) ([]byte, error) {
	if err := checkYAML(doc); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(doc)
}

// DecodeApply decodes the body of a server-side apply, YAML or JSON.
//
// strict also checks for duplicate keys; duplicates is then the error that lists them, and obj is still valid. Errors
// have the texts that Kubernetes puts after "error decoding patch: " and "error strict decoding patch: ".
func DecodeApply(data []byte, strict bool) (obj map[string]any, duplicates, err error) {
	// Clients usually send JSON; parsing it as YAML costs fifty times as much.
	if v, repeated, err := decode(data); err == nil && !repeated {
		if obj, ok := v.(map[string]any); ok {
			integers(obj)
			return obj, nil, nil
		}
	}
	if err := checkYAML(data); err != nil {
		return nil, nil, err
	}
	if err := utilyaml.Unmarshal(data, &obj); err != nil {
		return nil, nil, err
	}
	if strict {
		duplicates = utilyaml.UnmarshalStrict(data, &map[string]any{})
	}
	if obj == nil {
		obj = map[string]any{} // Kubernetes continues with an object without a kind
	}
	return obj, duplicates, nil
}

// integers converts each whole float64 below v to int64, because YAML does not distinguish 1 and 1.0. It returns the
// converted v.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, item := range v {
			switch item.(type) {
			case float64, map[string]any, []any:
				v[k] = integers(item)
			}
		}
	case []any:
		for i, item := range v {
			v[i] = integers(item)
		}
	case float64:
		if v == math.Trunc(v) && v >= -1<<63 && v < 1<<63 {
			return int64(v)
		}
	}
	return v
}

var errNotObject = errors.New("not a JSON object")
