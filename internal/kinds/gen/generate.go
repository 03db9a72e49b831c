package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/kinds/apiregistration"
	"github.com/bowsprit/bowsprit/internal/kinds/schemas"
)

// schema is the schema of a type in the files: the OpenAPI subset of structural schemas, with $ref to other types of
// the set. A $ref may have siblings, which take precedence over the referenced schema.
type schema struct {
	Ref                  string             `json:"$ref,omitempty"`
	Description          string             `json:"description,omitempty"`
	Type                 string             `json:"type,omitempty"`
	Format               string             `json:"format,omitempty"`
	Required             []string           `json:"required,omitempty"`
	Properties           map[string]*schema `json:"properties,omitempty"`
	AdditionalProperties *schema            `json:"additionalProperties,omitempty"`
	Items                *schema            `json:"items,omitempty"`
	Default              json.RawMessage    `json:"default,omitempty"`
	IntOrString          bool               `json:"x-kubernetes-int-or-string,omitempty"`
	PreserveUnknown      bool               `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
	ListType             string             `json:"x-kubernetes-list-type,omitempty"`
	ListMapKeys          []string           `json:"x-kubernetes-list-map-keys,omitempty"`
	MapType              string             `json:"x-kubernetes-map-type,omitempty"`

	// Fields only for published documents. Model is the name of a type that ends here, Zero Go's value for an omitted
	// field, Kinds the kinds of the type.
	Model         string          `json:"model,omitempty"`
	Zero          json.RawMessage `json:"zero,omitempty"`
	PatchStrategy string          `json:"patchStrategy,omitempty"`
	PatchMergeKey string          `json:"patchMergeKey,omitempty"`
	Kinds         []groupKind     `json:"kinds,omitempty"`
	Unions        []union         `json:"unions,omitempty"`
	OneOf         []string        `json:"types,omitempty"`
	// of an enum; the rules of the kinds check them, in their own words
	Values []string `json:"values,omitempty"`
}

// union means that one of these fields is set, the one that the discriminator selects; "" if there is none.
type union struct {
	Discriminator string            `json:"discriminator,omitempty"`
	Fields        map[string]string `json:"fields-to-discriminateBy"` // to the value, which is the Go name
}

type groupKind struct {
	Group   string `json:"group"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// generate returns the contents of all files by name.
func generate() (map[string][]byte, error) {
	g := &generator{src: newSources(), done: map[typeName]*schema{}, kinds: map[typeName][]groupKind{}}
	for _, r := range append(kinds.Resources(), apiregistration.Kinds()...) {
		g.wantVersions(r, "", "List")
		for _, s := range r.Subresources {
			if s.Virtual != nil {
				g.wantVersions(s.Virtual, "")
			}
		}
	}
	for len(g.queue) > 0 {
		n := g.queue[0]
		g.queue = g.queue[1:]
		s, err := g.define(n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
		g.done[n] = s
	}
	var out bytes.Buffer
	for _, n := range slices.SortedFunc(maps.Keys(g.done),
		func(a, b typeName) int { return strings.Compare(a.id(), b.id()) }) {
		out.WriteString(n.id() + "\t")
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		if err := e.Encode(g.done[n]); err != nil {
			return nil, err
		}
	}
	return map[string][]byte{"types.txt": out.Bytes()}, nil
}

// wantVersions queues the types of a resource's versions, with these name suffixes.
func (g *generator) wantVersions(r *catalog.Resource, ends ...string) {
	if !r.Answers("list") {
		ends = []string{""}
	}
	for _, v := range r.Versions {
		of := typeOf(v.New())
		for _, end := range ends {
			n := typeName{of.path, of.name + end}
			g.want(n)
			g.kinds[n] = []groupKind{{r.Group, r.Kind + end, v.Name}}
		}
	}
}

// typeOf returns the Go type that v points to. For one of our own types, which have no comments to publish, it returns
// the type of k8s.io/api that it replaces.
func typeOf(v any) typeName {
	t := reflect.TypeOf(v).Elem()
	if path, ok := strings.CutPrefix(schemas.TypeID(v), "io.k8s.api."); ok {
		path = strings.TrimSuffix(path, "."+t.Name())
		return typeName{"k8s.io/api/" + strings.ReplaceAll(path, ".", "/"), t.Name()}
	}
	return typeName{t.PkgPath(), t.Name()}
}

type generator struct {
	src   *sources
	queue []typeName
	done  map[typeName]*schema // nil while queued
	kinds map[typeName][]groupKind
}

// want queues a type, once, and returns the reference to it.
func (g *generator) want(n typeName) *schema {
	if _, ok := g.done[n]; !ok {
		g.done[n] = nil
		g.queue = append(g.queue, n)
	}
	return &schema{Ref: n.id()}
}

// define returns the schema of a named struct.
func (g *generator) define(n typeName) (*schema, error) {
	d, err := g.src.lookup(n)
	if err != nil {
		return nil, err
	}
	if s := published(n); s != nil {
		s.Description = d.doc.description()
		return s, nil
	}
	st, in, ok := g.src.structOf(d)
	if !ok {
		return nil, fmt.Errorf("not a struct")
	}
	s := &schema{Type: "object", Description: d.doc.description(), Properties: map[string]*schema{}, Kinds: g.kinds[n]}
	if d.doc.marker("structType") == "atomic" {
		s.MapType = "atomic"
	}
	if d.doc.has("union") {
		s.Unions = []union{unionOf(st)}
	}
	if err := g.fields(s, st, in); err != nil {
		return nil, err
	}
	return s, nil
}

// unionOf returns the union that all fields of a struct are.
func unionOf(st *ast.StructType) union {
	u := union{Fields: map[string]string{}}
	for _, f := range st.Fields.List {
		switch name, _ := jsonTag(f); {
		case name == "" || name == "-":
		case comment{f.Doc.Text()}.has("unionDiscriminator"):
			u.Discriminator = name
		default:
			u.Fields[name] = f.Names[0].Name
		}
	}
	return u
}

// fields adds the properties of st to s, including the fields of inlined structs.
func (g *generator) fields(s *schema, st *ast.StructType, d *declaration) error {
	for _, f := range st.Fields.List {
		name, options := jsonTag(f)
		if name == "-" {
			continue
		}
		if name == "" {
			if len(f.Names) > 0 {
				return fmt.Errorf("field %s has no JSON name", f.Names[0].Name)
			}
			inlined, err := d.resolve(f.Type)
			if err != nil {
				return err
			}
			in, err := g.src.lookup(inlined)
			if err != nil {
				return err
			}
			if err := g.fields(s, in.spec.Type.(*ast.StructType), in); err != nil {
				return err
			}
			continue
		}
		p, err := g.typeOf(f.Type, d)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		doc := comment{f.Doc.Text()}
		values, err := g.enum(f.Type, d)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p.Description = explained(doc, values).description()
		if err := g.markers(p, doc, d); err != nil {
			return err
		}
		p.PatchStrategy, p.PatchMergeKey = tagValue(f, "patchStrategy"), tagValue(f, "patchMergeKey")
		if p.Default == nil {
			p.Zero = g.zero(f.Type, d, slices.Contains(options, "omitempty"))
		}
		s.Properties[name] = p
		optional := doc.has("optional") || doc.has("k8s:optional") || slices.Contains(options, "omitempty")
		if doc.has("required") || doc.has("k8s:required") || !optional {
			s.Required = append(s.Required, name)
		}
	}
	return nil
}

// markers applies the markers in a field's comment to its schema.
func (g *generator) markers(p *schema, doc comment, d *declaration) error {
	if v := doc.marker("default"); v != "" {
		value, err := g.src.value(d.path, v)
		if err != nil {
			return err
		}
		p.Default = json.RawMessage(value)
	}
	if v := doc.marker("listType"); v != "" {
		p.ListType = v
	}
	p.ListMapKeys = doc.markers("listMapKey")
	if v := doc.marker("mapType"); v != "" {
		p.MapType = v
	}
	if v := doc.marker("structType"); v != "" {
		p.MapType = v
	}
	return nil
}

// typeOf returns the schema of a type expression in the file of d.
func (g *generator) typeOf(e ast.Expr, d *declaration) (*schema, error) {
	switch e := e.(type) {
	case *ast.StarExpr:
		return g.typeOf(e.X, d)
	case *ast.ArrayType:
		if id, ok := e.Elt.(*ast.Ident); ok && id.Name == "byte" {
			return &schema{Type: "string", Format: "byte"}, nil
		}
		items, err := g.typeOf(e.Elt, d)
		if err != nil {
			return nil, err
		}
		items.Zero = g.zero(e.Elt, d, false)
		return &schema{Type: "array", Items: items}, nil
	case *ast.MapType:
		values, err := g.typeOf(e.Value, d)
		if err != nil {
			return nil, err
		}
		values.Zero = g.zero(e.Value, d, false)
		return &schema{Type: "object", AdditionalProperties: values}, nil
	case *ast.Ident:
		if s := basic(e.Name); s != nil {
			return s, nil
		}
	}
	n, err := d.resolve(e)
	if err != nil {
		return nil, err
	}
	if s := special(n); s != nil {
		s.Model = g.want(n).Ref
		return s, nil
	}
	to, err := g.src.lookup(n)
	if err != nil {
		return nil, err
	}
	if _, _, ok := g.src.structOf(to); ok {
		return g.want(typeName{to.path, to.spec.Name.Name}), nil
	}
	s, err := g.typeOf(to.spec.Type, to)
	if err != nil {
		return nil, err
	}
	values, err := g.enum(e, d)
	if err != nil {
		return nil, err
	}
	s.Values, err = literals(values)
	return s, err
}

// zero returns the JSON of the value that a field of the type has when the client does not set it, as documents publish
// it: nil if it then has none, or is left out.
func (g *generator) zero(e ast.Expr, d *declaration, omitEmpty bool) json.RawMessage {
	id, ok := e.(*ast.Ident)
	if ok {
		if s := basic(id.Name); s != nil {
			if omitEmpty {
				return nil
			}
			return map[string]json.RawMessage{
				"string": []byte(`""`), "boolean": []byte("false"), "integer": []byte("0"), "number": []byte("0"),
			}[s.Type]
		}
	} else if _, ok := e.(*ast.SelectorExpr); !ok {
		return nil
	}
	n, err := d.resolve(e)
	if err != nil || published(n) != nil {
		return nil
	}
	to, err := g.src.lookup(n)
	if err != nil {
		return nil
	}
	if _, _, ok := g.src.structOf(to); ok {
		return []byte("{}")
	}
	return g.zero(to.spec.Type, to, omitEmpty)
}

// tagValue returns the value of a key of the field's tag.
func tagValue(f *ast.Field, key string) string {
	if f.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return ""
	}
	return reflect.StructTag(tag).Get(key)
}

// basic returns the schema of a predeclared Go type, or nil.
func basic(name string) *schema {
	switch name {
	case "string":
		return &schema{Type: "string"}
	case "bool":
		return &schema{Type: "boolean"}
	case "int", "int32", "int16", "int8", "uint32", "uint16":
		return &schema{Type: "integer", Format: "int32"}
	case "int64", "uint64":
		return &schema{Type: "integer", Format: "int64"}
	case "byte", "uint8":
		return &schema{Type: "integer", Format: "byte"}
	case "float64":
		return &schema{Type: "number", Format: "double"}
	case "float32":
		return &schema{Type: "number", Format: "float"}
	}
	return nil
}

// inFirstVersion returns the name of a type, with one name for both versions of the types of definitions.
func (n typeName) inFirstVersion() string {
	return strings.Replace(n.path, "/apis/apiextensions/v1beta1", "/apis/apiextensions/v1", 1) + "." + n.name
}

// Packages of types with a JSON form that differs from their Go fields.
const (
	meta          = "k8s.io/apimachinery/pkg/apis/meta/v1."
	apiextensions = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1."
)

// special returns the schema of a type with a JSON form that differs from its Go fields, or nil.
func special(n typeName) *schema {
	switch n.inFirstVersion() {
	case meta + "Time", meta + "MicroTime":
		return &schema{Type: "string", Format: "date-time"}
	case meta + "Duration":
		return &schema{Type: "string"}
	case meta + "FieldsV1":
		return &schema{Type: "object", PreserveUnknown: true}
	case "k8s.io/apimachinery/pkg/runtime.RawExtension":
		// Kubernetes treats it as opaque, so managers own it as a whole
		return &schema{Type: "object", PreserveUnknown: true, MapType: "atomic"}
	case "k8s.io/apimachinery/pkg/util/intstr.IntOrString", "k8s.io/apimachinery/pkg/api/resource.Quantity":
		return &schema{IntOrString: true}
	case apiextensions + "JSON", apiextensions + "JSONSchemaPropsOrArray", apiextensions + "JSONSchemaPropsOrBool",
		apiextensions + "JSONSchemaPropsOrStringArray":
		return &schema{PreserveUnknown: true}
	case apiextensions + "JSONSchemaProps":
		// Recursive, which structural schemas cannot be.
		return &schema{Type: "object", PreserveUnknown: true}
	}
	return nil
}

// published returns the definition, for documents, of a type with a JSON form that differs from its Go fields, or nil.
func published(n typeName) *schema {
	switch n.inFirstVersion() {
	case meta + "Time", meta + "MicroTime":
		return &schema{Type: "string", Format: "date-time"}
	case meta + "Duration":
		return &schema{Type: "string"}
	case meta + "FieldsV1", "k8s.io/apimachinery/pkg/runtime.RawExtension":
		return &schema{Type: "object"}
	case "k8s.io/apimachinery/pkg/util/intstr.IntOrString":
		return &schema{Format: "int-or-string", OneOf: []string{"integer", "string"}}
	case "k8s.io/apimachinery/pkg/api/resource.Quantity":
		return &schema{OneOf: []string{"string", "number"}}
	case apiextensions + "JSON", apiextensions + "JSONSchemaPropsOrArray", apiextensions + "JSONSchemaPropsOrBool",
		apiextensions + "JSONSchemaPropsOrStringArray":
		return &schema{}
	}
	return nil
}

// jsonTag returns the field's JSON name and the options behind it.
func jsonTag(f *ast.Field) (name string, options []string) {
	if f.Tag == nil {
		return "", nil
	}
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return "", nil
	}
	parts := strings.Split(reflect.StructTag(tag).Get("json"), ",")
	return parts[0], parts[1:]
}
