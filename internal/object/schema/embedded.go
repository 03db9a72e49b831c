package schema

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// isMeta reports whether key is one of the fields common to all resources.
func isMeta(key string) bool {
	return key == "apiVersion" || key == "kind" || key == "metadata"
}

// coerceMetadata converts the metadata of m to the form of ObjectMeta, without unknown and empty fields. drop also
// removes malformed fields instead of returning an error. Without drop, unknown lists the paths, within the metadata,
// of unknown fields.
func coerceMetadata(m map[string]any, drop bool) (unknown []string, err error) {
	value, ok := m["metadata"]
	if !ok || isPlainMetadata(value) {
		return nil, nil
	}
	meta, unknown, err := decodeMetadata(value, true)
	if err != nil && drop {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, nil
		}
		meta, err = salvageMetadata(fields), nil
	}
	if err != nil {
		return nil, err
	}
	m["metadata"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(meta)
	return unknown, err
}

// SalvageMetadata converts the metadata of a stored object to the form of ObjectMeta, in place: other writers may have
// stored values that no request could. Metadata with correct types is not changed.
func SalvageMetadata(obj map[string]any) error {
	if meta, ok := obj["metadata"].(map[string]any); ok && wellTyped(meta) {
		return nil
	}
	_, err := coerceMetadata(obj, true)
	return err
}

// wellTyped reports whether the fields of metadata that broken writers get wrong have the correct types. It runs for
// every object read, so it skips managedFields and owner references.
func wellTyped(meta map[string]any) bool {
	for key, v := range meta {
		switch key {
		case "labels", "annotations":
			m, ok := v.(map[string]any)
			if !ok {
				return false
			}
			for _, e := range m {
				if _, ok := e.(string); !ok {
					return false
				}
			}
		case "finalizers":
			list, ok := v.([]any)
			if !ok {
				return false
			}
			for _, e := range list {
				if _, ok := e.(string); !ok {
					return false
				}
			}
		case "ownerReferences", "managedFields":
			if _, ok := v.([]any); !ok {
				return false
			}
		case "generation", "deletionGracePeriodSeconds":
			if _, ok := v.(int64); !ok {
				return false
			}
		default:
			if _, ok := v.(string); !ok {
				return false
			}
		}
	}
	return true
}

// isPlainMetadata reports whether v consists only of fields that a round trip through ObjectMeta preserves, like nearly
// all metadata in templates.
func isPlainMetadata(v any) bool {
	fields, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for key, v := range fields {
		switch key {
		case "name", "generateName", "namespace":
			if s, ok := v.(string); !ok || s == "" {
				return false
			}
		case "labels", "annotations":
			m, ok := v.(map[string]any)
			if !ok || len(m) == 0 {
				return false
			}
			for _, e := range m {
				if _, ok := e.(string); !ok {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// decodeMetadata reads v as ObjectMeta. strict also returns the paths of unknown fields.
func decodeMetadata(v any, strict bool) (meta *metav1.ObjectMeta, unknown []string, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, nil, err
	}
	meta = &metav1.ObjectMeta{}
	if !strict {
		return meta, nil, kjson.UnmarshalCaseSensitivePreserveInts(raw, meta)
	}
	problems, err := kjson.UnmarshalStrict(raw, meta)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range problems {
		if f, ok := p.(kjson.FieldError); ok {
			unknown = append(unknown, f.FieldPath())
		}
	}
	return meta, unknown, nil
}

// salvageMetadata keeps the fields that ObjectMeta can hold.
func salvageMetadata(fields map[string]any) *metav1.ObjectMeta {
	meta, trial := &metav1.ObjectMeta{}, &metav1.ObjectMeta{}
	for _, key := range sortedKeys(fields) {
		raw, err := json.Marshal(map[string]any{key: fields[key]})
		if err == nil && kjson.UnmarshalCaseSensitivePreserveInts(raw, trial) == nil {
			_ = kjson.UnmarshalCaseSensitivePreserveInts(raw, meta) // just succeeded
		}
	}
	return meta
}

// explainMeta returns the errors in the identity and the metadata of the embedded resources in v, at path.
func explainMeta(n *Node, v any, path string) (errs field.ErrorList) {
	if !n.flags.has(metaBelow) {
		return nil
	}
	switch v := v.(type) {
	case []any:
		if n.Items != nil {
			for i, e := range v {
				errs = append(errs, explainMeta(n.Items, e, indexPath(path, i))...)
			}
		}
	case map[string]any:
		if n.Embedded {
			errs = explainEmbedded(v, path)
		}
		for _, key := range sortedKeys(v) {
			if child := n.Properties[key]; child != nil {
				if child.flags.has(metaBelow) {
					errs = append(errs, explainMeta(child, v[key], childPath(path, key))...)
				}
			} else if n.AdditionalProperties != nil {
				errs = append(errs, explainMeta(n.AdditionalProperties, v[key], keyPath(path, key))...)
			}
		}
	}
	return errs
}

// explainEmbedded returns the errors of one embedded resource.
func explainEmbedded(m map[string]any, path string) (errs field.ErrorList) {
	at := func(name string) *field.Path { return field.NewPath(childPath(path, name)) }
	apiVersion, hasVersion := m["apiVersion"]
	kind, hasKind := m["kind"]
	if !hasVersion {
		errs = append(errs, field.Required(at("apiVersion"), ""))
	}
	if !hasKind {
		errs = append(errs, field.Required(at("kind"), ""))
	}
	if hasVersion {
		if problem := badAPIVersion(apiVersion); problem != "" {
			errs = append(errs, field.Invalid(at("apiVersion"), apiVersion, problem))
		}
	}
	if hasKind {
		if problem := badKind(kind); problem != "" {
			errs = append(errs, field.Invalid(at("kind"), kind, problem))
		}
	}
	value, ok := m["metadata"]
	if !ok {
		return errs
	}
	meta, _, err := decodeMetadata(value, false)
	if err != nil {
		return append(errs, field.Invalid(at("metadata"), value, err.Error()))
	}
	if meta.Name == "" {
		meta.Name = "any" // an embedded resource needs no name, but the check below does
	}
	return append(errs, metavalidation.ValidateObjectMeta(meta, meta.Namespace != "", pathSegment, at("metadata"))...)
}

func badAPIVersion(v any) string {
	s, ok := v.(string)
	if !ok {
		return "must be a string"
	}
	if s == "" {
		return "must not be empty"
	}
	if _, err := runtimeschema.ParseGroupVersion(s); err != nil {
		return err.Error()
	}
	return ""
}

func badKind(v any) string {
	s, ok := v.(string)
	if !ok {
		return "must be a string"
	}
	if s == "" {
		return "must not be empty"
	}
	if problems := utilvalidation.IsDNS1035Label(strings.ToLower(s)); len(problems) > 0 {
		return "may have mixed case, but should otherwise match: " + strings.Join(problems, ",")
	}
	return ""
}

// pathSegment is the only rule for names of embedded resources: their kinds may have others.
func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}
