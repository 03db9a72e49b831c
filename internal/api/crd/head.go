package crd

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// DecodeWithoutSchemas decodes a stored definition without the schemas of its versions and without its managedFields,
// which are nearly all of it. The rest is sufficient for the catalog, Status and the conditions. The result shares no
// memory with raw.
//
// A starting server reads every definition once; this costs one scan of the bytes and little memory.
func DecodeWithoutSchemas(raw []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	obj, err := newScanner(raw).definition()
	if err != nil {
		return nil, fmt.Errorf("decode definition: %w", err)
	}
	return Decode(obj)
}

// DecodeSchema decodes the OpenAPI schema of the i-th version of a stored definition. nil means that it has none.
func DecodeSchema(raw []byte, i int) (*apiextensionsv1.JSONSchemaProps, error) {
	s := newScanner(raw)
	s.wanted = i
	if _, err := s.definition(); err != nil {
		return nil, fmt.Errorf("decode schema of version %d: %w", i, err)
	}
	m, _ := s.schema.(map[string]any)
	props, _ := m["openAPIV3Schema"].(map[string]any)
	if props == nil {
		return nil, nil
	}
	return decodeSchema(props)
}

// position is the scan's position in a definition, as far as it matters.
type position int

const (
	atRoot position = iota
	atMetadata
	atSpec
	atVersions
	atVersion
	elsewhere
)

// scanner decodes a definition and skips schemas and managedFields.
type scanner struct {
	dec     *jsontext.Decoder
	version int // index of the current version
	wanted  int // index of the version with the "schema" to decode into schema; -1 for none
	schema  any
}

func newScanner(raw []byte) *scanner {
	// Stored definitions were validated when they were written: they have no duplicate names.
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	return &scanner{dec: dec, wanted: -1}
}

// decodeDefinition decodes a whole stored definition.
func decodeDefinition(raw []byte) (map[string]any, error) {
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("decode definition: %w", err)
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("decode definition: not an object")
	}
	return obj, nil
}

func (s *scanner) definition() (map[string]any, error) {
	v, err := s.read(atRoot)
	if err != nil {
		return nil, err
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("not an object")
	}
	return obj, nil
}

func (s *scanner) read(at position) (any, error) {
	t, err := s.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case '{':
		return s.readObject(at)
	case '[':
		list := []any{}
		for s.dec.PeekKind() != ']' {
			item := elsewhere
			if at == atVersions {
				item, s.version = atVersion, len(list)
			}
			v, err := s.read(item)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := s.dec.ReadToken()
		return list, err
	case '"':
		return t.String(), nil
	case 't', 'f':
		return t.Bool(), nil
	case '0':
		if i, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return i, nil
		}
		return t.Float()
	}
	return nil, nil
}

func (s *scanner) readObject(at position) (any, error) {
	m := map[string]any{}
	for s.dec.PeekKind() != '}' {
		t, err := s.dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := t.String()
		switch {
		case at == atVersion && key == "schema" && s.version == s.wanted:
			if s.schema, err = s.read(elsewhere); err != nil {
				return nil, err
			}
			continue
		case at == atVersion && key == "schema", at == atMetadata && key == "managedFields":
			if err := s.dec.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}
		v, err := s.read(at.child(key))
		if err != nil {
			return nil, err
		}
		m[key] = v
	}
	_, err := s.dec.ReadToken()
	return m, err
}

func (p position) child(key string) position {
	switch {
	case p == atRoot && key == "metadata":
		return atMetadata
	case p == atRoot && key == "spec":
		return atSpec
	case p == atSpec && key == "versions":
		return atVersions
	}
	return elsewhere
}
