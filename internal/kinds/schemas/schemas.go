// Package schemas holds the schemas of the built-in kinds, which package gen derives from the published Go types.
//
// Schemas are decoded on demand; the text is part of the binary and is searched in place.
package schemas

import (
	_ "embed" // the text
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

//go:generate sh -c "cd ../../.. && go run ./internal/kinds/gen"

// text holds a line for each type: its OpenAPI name, a tab, its schema. Lines are sorted. See package gen.
//
//go:embed types.txt
var text string

// Expanded returns the schema of a kind in the form of a definition: without references, and with empty metadata, which
// is the same for all kinds. It decodes the text at each call; callers keep the compiled schema.
func Expanded(root string) (*apiextensionsv1.JSONSchemaProps, error) {
	e := expander{level: map[string]int{}}
	s, err := e.lookup(root)
	if err != nil {
		return nil, err
	}
	s.Properties = maps.Clone(s.Properties)
	s.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{
		Type: "object", Description: s.Properties["metadata"].Description,
	}
	return &s, e.expand(&s)
}

// mostLevels is the number of times that a type is expanded inside itself. The templates of groups of groups of a
// Workload may have four levels; validation sees the fifth.
const mostLevels = 5

// expander replaces references by the referenced schemas.
type expander struct {
	level map[string]int // the number of schemas around the current one, by type
}

func (e expander) lookup(id string) (apiextensionsv1.JSONSchemaProps, error) {
	var s apiextensionsv1.JSONSchemaProps
	data, err := Definition(id)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("decode schema of %s: %w", id, err)
	}
	return s, nil
}

// Definition returns the schema in the line of a type. It reads only the names that a binary search visits.
func Definition(id string) ([]byte, error) {
	low, high := 0, len(text) // starts of lines, or the end
	for low < high {
		start := strings.LastIndexByte(text[:(low+high)/2], '\n') + 1
		name, schema, _ := strings.Cut(text[start:], "\t")
		end := strings.IndexByte(schema, '\n')
		switch strings.Compare(name, id) {
		case 0:
			return []byte(schema[:end]), nil
		case -1:
			low = start + len(name) + 1 + end + 1
		default:
			high = start
		}
	}
	return nil, fmt.Errorf("no schema of %s", id)
}

func (e expander) expand(s *apiextensionsv1.JSONSchemaProps) error {
	if s.Ref != nil {
		id := *s.Ref
		if e.level[id] == mostLevels {
			preserve := true
			*s = apiextensionsv1.JSONSchemaProps{
				Description: s.Description, Type: "object", XPreserveUnknownFields: &preserve,
			}
			return nil
		}
		e.level[id]++
		defer func() { e.level[id]-- }()
		to, err := e.lookup(id)
		if err != nil {
			return err
		}
		if s.Description != "" {
			to.Description = s.Description
		}
		if s.Default != nil {
			to.Default = s.Default
		}
		if s.XMapType != nil {
			to.XMapType = s.XMapType
		}
		*s = to
	}
	if s.Properties != nil {
		expanded := make(map[string]apiextensionsv1.JSONSchemaProps, len(s.Properties))
		for name, p := range s.Properties {
			if err := e.expand(&p); err != nil {
				return err
			}
			expanded[name] = p
		}
		s.Properties = expanded
	}
	if s.Items != nil {
		items := *s.Items.Schema
		s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}
		if err := e.expand(&items); err != nil {
			return err
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		values := *s.AdditionalProperties.Schema
		s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values}
		return e.expand(&values)
	}
	return nil
}

// TypeID returns the OpenAPI name of the Go type that v points to: "io.k8s.api.core.v1.Event". Our own replacement of a
// Kubernetes type provides the name itself.
func TypeID(v any) string {
	if named, ok := v.(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	t := reflect.TypeOf(v).Elem()
	host, rest, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(host, ".")
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(rest, "/", ".") + "." + t.Name()
}
