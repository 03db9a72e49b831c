package extension

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// derivation makes the schema of a Go type, and finds its columns.
type derivation struct {
	columns []apiextensionsv1.CustomResourceColumnDefinition
	within  map[reflect.Type]bool // types being derived: a type inside itself has no schema
}

// wellKnown maps types whose JSON differs from their Go form to schemas.
var wellKnown = map[reflect.Type]apiextensionsv1.JSONSchemaProps{
	reflect.TypeFor[metav1.Time]():          {Type: "string", Format: "date-time"},
	reflect.TypeFor[metav1.MicroTime]():     {Type: "string", Format: "date-time"},
	reflect.TypeFor[time.Time]():            {Type: "string", Format: "date-time"},
	reflect.TypeFor[metav1.Duration]():      {Type: "string"},
	reflect.TypeFor[intstr.IntOrString]():   {XIntOrString: true},
	reflect.TypeFor[resource.Quantity]():    {XIntOrString: true, Pattern: quantityPattern},
	reflect.TypeFor[metav1.ObjectMeta]():    {Type: "object"},
	reflect.TypeFor[runtime.RawExtension](): {Type: "object", XPreserveUnknownFields: new(true)},
	reflect.TypeFor[json.RawMessage]():      {XPreserveUnknownFields: new(true)},
	reflect.TypeFor[[]byte]():               {Type: "string", Format: "byte"},
}

// quantityPattern is controller-gen's pattern for quantities.
const quantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// of returns the schema of a type. path is its JSON path.
func (d *derivation) of(t reflect.Type, path string) (*apiextensionsv1.JSONSchemaProps, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, ok := wellKnown[t]; ok {
		return s.DeepCopy(), nil
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil, fmt.Errorf("%s: the JSON form of %s is not known: use another type", path, t)
	}
	switch t.Kind() {
	case reflect.String:
		return &apiextensionsv1.JSONSchemaProps{Type: "string"}, nil
	case reflect.Bool:
		return &apiextensionsv1.JSONSchemaProps{Type: "boolean"}, nil
	case reflect.Int32:
		return &apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int32"}, nil
	case reflect.Int, reflect.Int64:
		return &apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}, nil
	case reflect.Int8, reflect.Int16:
		bits := t.Bits() - 1
		return &apiextensionsv1.JSONSchemaProps{
			Type: "integer", Minimum: new(-float64(uint64(1) << bits)), Maximum: new(float64(uint64(1)<<bits - 1)),
		}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: new(0.0)}, nil
	case reflect.Float32, reflect.Float64:
		return &apiextensionsv1.JSONSchemaProps{Type: "number"}, nil
	case reflect.Interface:
		return &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}, nil
	case reflect.Slice, reflect.Array:
		items, err := d.of(t.Elem(), path+"[]")
		return &apiextensionsv1.JSONSchemaProps{
			Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: items},
		}, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("%s: the keys of a map are strings, not %s", path, t.Key())
		}
		values, err := d.of(t.Elem(), path+"{}")
		return &apiextensionsv1.JSONSchemaProps{
			Type:                 "object",
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: values},
		}, err
	case reflect.Struct:
		return d.ofStruct(t, path)
	}
	return nil, fmt.Errorf("%s: %s cannot be written as JSON", path, t)
}

func (d *derivation) ofStruct(t reflect.Type, path string) (*apiextensionsv1.JSONSchemaProps, error) {
	if d.within[t] {
		return nil, fmt.Errorf("%s: %s holds itself, which no structural schema can say: use runtime.RawExtension", path, t)
	}
	d.within[t] = true
	defer delete(d.within, t)
	s := &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{},
	}
	return s, d.fields(s, t, path)
}

// fields adds the fields of a struct, including the fields of embedded structs, to its schema.
func (d *derivation) fields(s *apiextensionsv1.JSONSchemaProps, t reflect.Type, path string) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inline := f.Anonymous && name == ""
		switch {
		case name == "-" || !f.IsExported() && !inline:
			continue
		case inline:
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			if err := d.fields(s, embedded, path); err != nil {
				return err
			}
			continue
		case name == "":
			name = f.Name
		}
		if err := d.field(s, f, name, options, path+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func (d *derivation) field(
	s *apiextensionsv1.JSONSchemaProps, f reflect.StructField, name, options, path string,
) error {
	p, err := d.of(f.Type, path)
	if err != nil {
		return err
	}
	p.Description = f.Tag.Get("doc")
	if err := adjust(p, f.Tag.Get("schema")); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if rule := f.Tag.Get("rule"); rule != "" {
		p.XValidations = append(p.XValidations, apiextensionsv1.ValidationRule{Rule: rule})
	}
	if title := f.Tag.Get("column"); title != "" {
		d.column(title, p, path)
	}
	optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") ||
		f.Type.Kind() == reflect.Pointer || p.Default != nil
	if path != ".metadata" && !optional {
		s.Required = append(s.Required, name)
	}
	s.Properties[name] = *p
	return nil
}

func (d *derivation) column(title string, p *apiextensionsv1.JSONSchemaProps, path string) {
	c := apiextensionsv1.CustomResourceColumnDefinition{Name: title, Type: p.Type, JSONPath: path}
	switch {
	case p.Format == "date-time":
		c.Type = "date"
	case p.Type != "integer" && p.Type != "number" && p.Type != "boolean":
		c.Type = "string"
	}
	d.columns = append(d.columns, c)
}

// adjust applies a field's tag to a schema: "minimum=1,maximum=5,default=3", "enum=Flunder|Fischer".
func adjust(s *apiextensionsv1.JSONSchemaProps, tag string) error {
	for rest := tag; rest != ""; {
		var one string
		if strings.HasPrefix(rest, "pattern=") {
			one, rest = rest, "" // it may have commas
		} else {
			one, rest, _ = strings.Cut(rest, ",")
		}
		name, value, _ := strings.Cut(one, "=")
		if err := keyword(s, name, value); err != nil {
			return fmt.Errorf("tag schema, %s: %w", one, err)
		}
	}
	return nil
}

// keyword sets one keyword of a schema.
func keyword(s *apiextensionsv1.JSONSchemaProps, name, value string) (err error) {
	number := func(to **float64) {
		v, wrong := strconv.ParseFloat(value, 64)
		*to, err = &v, wrong
	}
	count := func(to **int64) {
		v, wrong := strconv.ParseInt(value, 10, 64)
		*to, err = &v, wrong
	}
	switch name {
	case "minimum":
		number(&s.Minimum)
	case "maximum":
		number(&s.Maximum)
	case "minLength":
		count(&s.MinLength)
	case "maxLength":
		count(&s.MaxLength)
	case "minItems":
		count(&s.MinItems)
	case "maxItems":
		count(&s.MaxItems)
	case "maxProperties":
		count(&s.MaxProperties)
	case "pattern":
		s.Pattern = value
	case "format":
		s.Format = value
	case "default":
		s.Default = &apiextensionsv1.JSON{Raw: literal(s, value)}
	case "enum":
		for _, one := range strings.Split(value, "|") {
			s.Enum = append(s.Enum, apiextensionsv1.JSON{Raw: literal(s, one)})
		}
	case "listType":
		s.XListType = &value
	case "listMapKey":
		s.XListMapKeys = append(s.XListMapKeys, value)
	default:
		return fmt.Errorf("there is no such keyword")
	}
	return err
}

// literal returns a value as JSON. The text is quoted if the schema is of type string.
func literal(s *apiextensionsv1.JSONSchemaProps, text string) []byte {
	if s.Type != "string" && json.Valid([]byte(text)) {
		return []byte(text)
	}
	quoted, _ := json.Marshal(text) // a string can be written
	return quoted
}
