package builtin

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

//go:generate sh -c "cd ../.. && go run ./internal/builtin/gen"

// schemas holds one file for each Go package: its types by OpenAPI name, with $ref among them. See package gen.
//
//go:embed schemas
var schemas embed.FS

// source returns the schema of a kind as a definition would have it: without references, and with nothing in metadata,
// which is the same for all kinds. It reads the files at each call; the compiled schema is what is kept.
func source(root string) (*apiextensionsv1.JSONSchemaProps, error) {
	e := expander{files: map[string]definitions{}}
	s, err := e.lookup(root)
	if err != nil {
		return nil, err
	}
	s.Properties = maps.Clone(s.Properties)
	s.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Type: "object", Description: s.Properties["metadata"].Description}
	return &s, e.expand(&s)
}

// models returns the schemas of a kind and of all types that it refers to, by OpenAPI name, with the references in place: as
// OpenAPI documents publish them.
func models(root string) (map[string]apiextensionsv1.JSONSchemaProps, error) {
	e := expander{files: map[string]definitions{}}
	out := map[string]apiextensionsv1.JSONSchemaProps{}
	var add func(id string) error
	var follow func(s *apiextensionsv1.JSONSchemaProps) error
	add = func(id string) error {
		if _, done := out[id]; done {
			return nil
		}
		s, err := e.lookup(id)
		if err != nil {
			return err
		}
		out[id] = s
		return follow(&s)
	}
	follow = func(s *apiextensionsv1.JSONSchemaProps) error {
		if s.Ref != nil {
			return add(*s.Ref)
		}
		for _, p := range s.Properties {
			if err := follow(&p); err != nil {
				return err
			}
		}
		if s.Items != nil {
			return follow(s.Items.Schema)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			return follow(s.AdditionalProperties.Schema)
		}
		return nil
	}
	return out, add(root)
}

type definitions map[string]apiextensionsv1.JSONSchemaProps

// expander replaces references by what they refer to. The types of the files are not recursive.
type expander struct{ files map[string]definitions }

func (e expander) lookup(id string) (apiextensionsv1.JSONSchemaProps, error) {
	file := id[:strings.LastIndexByte(id, '.')] + ".json"
	if e.files[file] == nil {
		data, err := schemas.ReadFile("schemas/" + file)
		if err != nil {
			return apiextensionsv1.JSONSchemaProps{}, err
		}
		types := definitions{}
		if err := json.Unmarshal(data, &types); err != nil {
			return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("decode %s: %w", file, err)
		}
		e.files[file] = types
	}
	s, ok := e.files[file][id]
	if !ok {
		return s, fmt.Errorf("no schema of %s", id)
	}
	return s, nil
}

func (e expander) expand(s *apiextensionsv1.JSONSchemaProps) error {
	if s.Ref != nil {
		to, err := e.lookup(*s.Ref)
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

// typeID returns the OpenAPI name of the Go type that v points to: "io.k8s.api.core.v1.Event".
func typeID(v any) string {
	t := reflect.TypeOf(v).Elem()
	host, rest, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(host, ".")
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(rest, "/", ".") + "." + t.Name()
}
