package convert

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// StoredVersion returns the apiVersion of a stored object of a built-in kind, in any encoding. It is "" if the value is
// encrypted, or not an object.
func StoredVersion(value []byte) string {
	switch encodingOf(value) {
	case asJSON:
		return versionInJSON(value)
	case asCompressed:
		value, err := decompress(value)
		if err != nil {
			return ""
		}
		return versionInJSON(value)
	case asProtobuf:
		envelope, err := codec.OpenEnvelope(value)
		if err != nil {
			return ""
		}
		return envelope.APIVersion
	case asYAML:
		for line := range bytes.Lines(value) {
			if version, ok := bytes.CutPrefix(line, []byte("apiVersion: ")); ok {
				return string(bytes.TrimSpace(version))
			}
		}
	}
	return ""
}

// versionInJSON returns the apiVersion of an object. An object with this key first, as this server writes it, or right
// after the kind, as kube-apiserver writes it, need not be parsed.
func versionInJSON(value []byte) string {
	rest := value
	if after, ok := bytes.CutPrefix(rest, []byte(`{"kind":"`)); ok {
		if end := bytes.IndexAny(after, `"\`); end > 0 && bytes.HasPrefix(after[end:], []byte(`","`)) {
			rest = after[end+1:]
		}
	}
	if after, ok := bytes.CutPrefix(rest[min(1, len(rest)):], []byte(`"apiVersion":"`)); ok {
		if end := bytes.IndexAny(after, `"\`); end > 0 && after[end] == '"' {
			return string(after[:end])
		}
	}
	var typed struct{ APIVersion string }
	if json.Unmarshal(value, &typed) != nil {
		return ""
	}
	return typed.APIVersion
}

// check returns an error if this release cannot read the version of a stored object. The text begins like
// kube-apiserver's. Values without a version pass.
func (s *Storing) check(kind *catalog.Resource, value []byte) error {
	apiVersion := StoredVersion(value)
	if apiVersion == "" || s.readable(apiVersion) {
		return nil
	}
	for _, v := range kind.Versions {
		if kind.APIVersion(v) == apiVersion {
			return nil
		}
	}
	return fmt.Errorf("no kind %q is registered for version %q: this release does not have the version; delete the "+
		"object, or start an earlier release to convert it", kind.Kind, apiVersion)
}
