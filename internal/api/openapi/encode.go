package openapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// appendSchema appends the JSON of s to dst, equal to json.Marshal's except for the order of keys and the escapes.
// kube-openapi encodes by reflection, and encoding/json then processes the result again; together they took more time
// than everything else about a document.
func appendSchema(dst []byte, s *spec.Schema) ([]byte, error) {
	if unusual(s) {
		return appendAny(dst, s)
	}
	return appendSchemaWith(dst, s, nil)
}

// appendSchemaWith is appendSchema for a schema that is not unusual. If properties is set, it writes the members of the
// object "properties" instead of s's.
func appendSchemaWith(dst []byte, s *spec.Schema, properties func(*memberWriter)) ([]byte, error) {
	w := memberWriter{dst: append(dst, '{')}
	for _, name := range slices.Sorted(maps.Keys(s.Extensions)) {
		if strings.HasPrefix(name, "x-") { // as in kube-openapi
			w.value(name, s.Extensions[name])
		}
	}
	w.text("description", s.Description)
	switch len(s.Type) {
	case 0:
	case 1:
		w.text("type", s.Type[0])
	default:
		w.value("type", []string(s.Type))
	}
	w.flag("nullable", s.Nullable)
	w.text("format", s.Format)
	w.text("title", s.Title)
	if s.Default != nil {
		w.value("default", s.Default)
	}
	w.bounds(s)
	if len(s.Enum) > 0 {
		w.value("enum", s.Enum)
	}
	if len(s.Required) > 0 {
		w.value("required", s.Required)
	}
	w.children(s, properties)
	if ref := s.Ref.String(); ref != "" {
		w.text("$ref", ref)
	}
	return append(w.dst, '}'), w.err
}

// unusual reports whether s has parts that schemas of served kinds rarely have.
func unusual(s *spec.Schema) bool {
	return s.ID != "" || s.Schema != "" || s.Discriminator != "" || s.ReadOnly || s.ExternalDocs != nil ||
		s.Example != nil || s.AdditionalItems != nil || len(s.PatternProperties) > 0 || len(s.Dependencies) > 0 ||
		len(s.Definitions) > 0 || len(s.ExtraProps) > 0 ||
		s.Items != nil && (s.Items.Schema == nil || len(s.Items.Schemas) > 0)
}

// memberWriter appends the members of a JSON object to dst. The first error stays.
type memberWriter struct {
	dst   []byte
	count int
	err   error
}

func (w *memberWriter) key(name string) {
	if w.count++; w.count > 1 {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(codec.AppendString(w.dst, name), ':')
}

func (w *memberWriter) text(name, value string) {
	if value != "" {
		w.key(name)
		w.dst = codec.AppendString(w.dst, value)
	}
}

func (w *memberWriter) flag(name string, value bool) {
	if value {
		w.key(name)
		w.dst = append(w.dst, "true"...)
	}
}

func (w *memberWriter) integer(name string, value *int64) {
	if value != nil {
		w.key(name)
		w.dst = strconv.AppendInt(w.dst, *value, 10)
	}
}

func (w *memberWriter) number(name string, value *float64) {
	if value != nil {
		w.value(name, *value)
	}
}

func (w *memberWriter) raw(name string, value []byte) {
	w.key(name)
	w.dst = append(w.dst, value...)
}

func (w *memberWriter) value(name string, value any) {
	w.key(name)
	w.keep(appendAny(w.dst, value))
}

func (w *memberWriter) schema(name string, s *spec.Schema) {
	w.key(name)
	w.keep(appendSchema(w.dst, s))
}

func (w *memberWriter) schemas(name string, list []spec.Schema) {
	if len(list) == 0 {
		return
	}
	w.key(name)
	for i := range list {
		w.dst = append(w.dst, "[,"[min(i, 1)])
		w.keep(appendSchema(w.dst, &list[i]))
	}
	w.dst = append(w.dst, ']')
}

func (w *memberWriter) keep(dst []byte, err error) {
	w.dst = dst
	if w.err == nil {
		w.err = err
	}
}

// bounds writes the limits of simple values.
func (w *memberWriter) bounds(s *spec.Schema) {
	w.number("maximum", s.Maximum)
	w.flag("exclusiveMaximum", s.ExclusiveMaximum)
	w.number("minimum", s.Minimum)
	w.flag("exclusiveMinimum", s.ExclusiveMinimum)
	w.integer("maxLength", s.MaxLength)
	w.integer("minLength", s.MinLength)
	w.text("pattern", s.Pattern)
	w.integer("maxItems", s.MaxItems)
	w.integer("minItems", s.MinItems)
	w.flag("uniqueItems", s.UniqueItems)
	w.number("multipleOf", s.MultipleOf)
	w.integer("maxProperties", s.MaxProperties)
	w.integer("minProperties", s.MinProperties)
}

// children writes the schemas inside s; properties as for appendSchemaWith.
func (w *memberWriter) children(s *spec.Schema, properties func(*memberWriter)) {
	if s.Items != nil {
		w.schema("items", s.Items.Schema)
	}
	w.schemas("allOf", s.AllOf)
	w.schemas("oneOf", s.OneOf)
	w.schemas("anyOf", s.AnyOf)
	if s.Not != nil {
		w.schema("not", s.Not)
	}
	switch {
	case properties != nil:
		w.key("properties")
		inner := memberWriter{dst: append(w.dst, '{')}
		properties(&inner)
		w.keep(append(inner.dst, '}'), inner.err)
	case len(s.Properties) > 0:
		w.key("properties")
		inner := memberWriter{dst: append(w.dst, '{')}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			property := s.Properties[name]
			inner.schema(name, &property)
		}
		w.keep(append(inner.dst, '}'), inner.err)
	}
	switch a := s.AdditionalProperties; {
	case a == nil:
	case a.Schema != nil:
		w.schema("additionalProperties", a.Schema)
	default:
		w.key("additionalProperties")
		w.dst = strconv.AppendBool(w.dst, a.Allows)
	}
}

// appendAny appends the JSON of a value other than a schema, or of an unusual schema.
func appendAny(dst []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return codec.AppendString(dst, v), nil
	case []string:
		return appendList(dst, v)
	case []any:
		return appendList(dst, v)
	}
	raw, err := json.Marshal(value)
	return append(dst, raw...), err
}

func appendList[T any](dst []byte, list []T) (out []byte, err error) {
	if list == nil {
		return append(dst, "null"...), nil
	}
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendAny(dst, v); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// appendObject appends a JSON object with encoded members, in the order of their names.
func appendObject(dst []byte, values map[string]json.RawMessage) []byte {
	w := memberWriter{dst: append(dst, '{')}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		w.raw(name, values[name])
	}
	return append(w.dst, '}')
}

// encodeDefinitions encodes schemas as members of a JSON object, without the braces around them.
func encodeDefinitions(schemas map[string]*spec.Schema) ([]byte, error) {
	var w memberWriter
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		w.schema(name, schemas[name])
	}
	return w.dst, w.err
}
