package openapi

import (
	"fmt"
	"maps"
	"slices"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// protobufV2 encodes paths and definitions as a document of protocol buffers.
//
// It builds the messages itself: gnostic can only make them from JSON through YAML, which takes several times as long
// as everything else, and kubectl reads this document when it applies a changed object.
func protobufV2(paths map[string]pathV2, definitions map[string]*spec.Schema) ([]byte, error) {
	x := looseValues{}
	doc := &openapi_v2.Document{Paths: &openapi_v2.Paths{}, Definitions: &openapi_v2.Definitions{}}
	for _, name := range sortedKeys(paths) {
		item, err := paths[name].message(x)
		if err != nil {
			return nil, fmt.Errorf("encode path %s: %w", name, err)
		}
		doc.Paths.Path = append(doc.Paths.Path, &openapi_v2.NamedPathItem{Name: name, Value: item})
	}
	for _, name := range sortedKeys(definitions) {
		s, err := x.schema(definitions[name])
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		doc.Definitions.AdditionalProperties = append(doc.Definitions.AdditionalProperties,
			&openapi_v2.NamedSchema{Name: name, Value: s})
	}
	return proto.Marshal(doc)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// looseValues encodes values without a fixed type, as YAML. That is slow, and values such as an operation's kind or a
// true repeat, so each value is encoded once; messages are shared.
type looseValues map[any]*openapi_v2.Any

// schema converts a schema reduced by lossy; v2 has no other keywords.
func (x looseValues) schema(s *spec.Schema) (*openapi_v2.Schema, error) {
	out := &openapi_v2.Schema{
		XRef: s.Ref.String(), Format: s.Format, Title: s.Title, Description: s.Description,
		MultipleOf: or(s.MultipleOf), Maximum: or(s.Maximum), ExclusiveMaximum: s.ExclusiveMaximum,
		Minimum: or(s.Minimum), ExclusiveMinimum: s.ExclusiveMinimum,
		MaxLength: or(s.MaxLength), MinLength: or(s.MinLength), Pattern: s.Pattern,
		MaxItems: or(s.MaxItems), MinItems: or(s.MinItems), UniqueItems: s.UniqueItems,
		MaxProperties: or(s.MaxProperties), MinProperties: or(s.MinProperties), Required: s.Required,
	}
	var err error
	if len(s.Type) > 0 {
		out.Type = &openapi_v2.TypeItem{Value: s.Type}
	}
	if s.ExternalDocs != nil {
		out.ExternalDocs = &openapi_v2.ExternalDocs{Description: s.ExternalDocs.Description, Url: s.ExternalDocs.URL}
	}
	if s.Example != nil {
		if out.Example, err = x.message(s.Example); err != nil {
			return nil, err
		}
	}
	for _, v := range s.Enum {
		message, err := x.message(v)
		if err != nil {
			return nil, err
		}
		out.Enum = append(out.Enum, message)
	}
	if err := x.children(s, out); err != nil {
		return nil, err
	}
	out.VendorExtension, err = x.extensions(s.Extensions)
	return out, err
}

// children adds the schemas of nested values to out.
func (x looseValues) children(s *spec.Schema, out *openapi_v2.Schema) error {
	if s.Items != nil && s.Items.Schema != nil {
		item, err := x.schema(s.Items.Schema)
		if err != nil {
			return err
		}
		out.Items = &openapi_v2.ItemsItem{Schema: []*openapi_v2.Schema{item}}
	}
	if a := s.AdditionalProperties; a != nil && a.Schema != nil {
		value, err := x.schema(a.Schema)
		if err != nil {
			return err
		}
		out.AdditionalProperties = &openapi_v2.AdditionalPropertiesItem{
			Oneof: &openapi_v2.AdditionalPropertiesItem_Schema{Schema: value},
		}
	} else if a != nil {
		out.AdditionalProperties = &openapi_v2.AdditionalPropertiesItem{
			Oneof: &openapi_v2.AdditionalPropertiesItem_Boolean{Boolean: a.Allows},
		}
	}
	if len(s.Properties) > 0 {
		out.Properties = &openapi_v2.Properties{}
	}
	for _, name := range sortedKeys(s.Properties) {
		property := s.Properties[name]
		value, err := x.schema(&property)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out.Properties.AdditionalProperties = append(out.Properties.AdditionalProperties,
			&openapi_v2.NamedSchema{Name: name, Value: value})
	}
	return nil
}

// or returns *p, or zero if p is nil: protocol buffers do not distinguish them here.
func or[T int64 | float64](p *T) T {
	if p == nil {
		return 0
	}
	return *p
}

func (x looseValues) extensions(extensions map[string]any) ([]*openapi_v2.NamedAny, error) {
	var out []*openapi_v2.NamedAny
	for _, name := range sortedKeys(extensions) {
		value, err := x.message(extensions[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, &openapi_v2.NamedAny{Name: name, Value: value})
	}
	return out, nil
}

func (x looseValues) message(v any) (*openapi_v2.Any, error) {
	switch v.(type) {
	case string, bool, groupVersionKind:
	default: // not usable as a key, or an arbitrary value
		b, err := yaml.Marshal(v)
		return &openapi_v2.Any{Yaml: string(b)}, err
	}
	if known := x[v]; known != nil {
		return known, nil
	}
	b, err := yaml.Marshal(v)
	x[v] = &openapi_v2.Any{Yaml: string(b)}
	return x[v], err
}

func (at pathV2) message(x looseValues) (*openapi_v2.PathItem, error) {
	out := &openapi_v2.PathItem{}
	for name, member := range at {
		op, ok := member.(operationV2)
		if !ok {
			out.Parameters = parameterMessages(member.([]parameterV2))
			continue
		}
		message, err := op.message(x)
		if err != nil {
			return nil, err
		}
		switch name {
		case "get":
			out.Get = message
		case "put":
			out.Put = message
		case "post":
			out.Post = message
		case "delete":
			out.Delete = message
		case "patch":
			out.Patch = message
		case "head":
			out.Head = message
		case "options":
			out.Options = message
		}
	}
	return out, nil
}

func (op operationV2) message(x looseValues) (*openapi_v2.Operation, error) {
	out := &openapi_v2.Operation{
		Tags: op.Tags, Description: op.Description, OperationId: op.ID, Produces: op.Produces, Consumes: op.Consumes,
		Schemes:    op.Schemes,
		Parameters: parameterMessages(op.Parameters), Responses: &openapi_v2.Responses{},
	}
	for _, code := range sortedKeys(op.Responses) {
		r := &openapi_v2.Response{Description: op.Responses[code].Description}
		if s := op.Responses[code].Schema; s != nil {
			r.Schema = &openapi_v2.SchemaItem{Oneof: &openapi_v2.SchemaItem_Schema{Schema: s.message()}}
		}
		out.Responses.ResponseCode = append(out.Responses.ResponseCode, &openapi_v2.NamedResponseValue{
			Name: code, Value: &openapi_v2.ResponseValue{Oneof: &openapi_v2.ResponseValue_Response{Response: r}},
		})
	}
	var err error
	if op.Kind != nil {
		out.VendorExtension, err = x.extensions(map[string]any{
			"x-kubernetes-action": op.Action, "x-kubernetes-group-version-kind": *op.Kind,
		})
	}
	return out, err
}

func (s *referenceV2) message() *openapi_v2.Schema {
	if s.Type != "" {
		return &openapi_v2.Schema{Type: &openapi_v2.TypeItem{Value: []string{s.Type}}}
	}
	return &openapi_v2.Schema{XRef: s.Ref}
}

func parameterMessages(ps []parameterV2) []*openapi_v2.ParametersItem {
	var out []*openapi_v2.ParametersItem
	for _, p := range ps {
		if p.Ref != "" {
			out = append(out,
				&openapi_v2.ParametersItem{
					Oneof: &openapi_v2.ParametersItem_JsonReference{
						JsonReference: &openapi_v2.JsonReference{XRef: p.Ref},
					},
				})
			continue
		}
		out = append(out,
			&openapi_v2.ParametersItem{Oneof: &openapi_v2.ParametersItem_Parameter{Parameter: p.message()}})
	}
	return out
}

func (p parameterV2) message() *openapi_v2.Parameter {
	if p.In == "body" {
		body := &openapi_v2.BodyParameter{
			Name: p.Name, In: p.In, Required: p.Required, Schema: &openapi_v2.Schema{XRef: p.Schema.Ref},
		}
		return &openapi_v2.Parameter{Oneof: &openapi_v2.Parameter_BodyParameter{BodyParameter: body}}
	}
	other := &openapi_v2.NonBodyParameter{}
	if p.In == "path" {
		path := &openapi_v2.PathParameterSubSchema{
			Required: p.Required, In: p.In, Description: p.Description, Name: p.Name, Type: p.Type,
			UniqueItems: p.UniqueItems,
		}
		other.Oneof = &openapi_v2.NonBodyParameter_PathParameterSubSchema{PathParameterSubSchema: path}
	} else {
		query := &openapi_v2.QueryParameterSubSchema{
			Required: p.Required, In: p.In, Description: p.Description, Name: p.Name, Type: p.Type,
			UniqueItems: p.UniqueItems,
		}
		other.Oneof = &openapi_v2.NonBodyParameter_QueryParameterSubSchema{QueryParameterSubSchema: query}
	}
	return &openapi_v2.Parameter{Oneof: &openapi_v2.Parameter_NonBodyParameter{NonBodyParameter: other}}
}
