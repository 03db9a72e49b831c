package schema

import (
	"errors"
	"fmt"
	"reflect"
	"regexp/syntax"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object/schema/format"
)

// CheckSupported returns an error for keywords that a structural schema cannot express at all, for the first it finds.
func CheckSupported(props *apiextensionsv1.JSONSchemaProps) error {
	w := supported{}
	return w.check(props, 0)
}

type supported struct{ scratch }

func (w *supported) check(p *apiextensionsv1.JSONSchemaProps, depth int) error {
	if p == nil {
		return nil
	}
	unsupported := func(keyword string) error { return fmt.Errorf("OpenAPIV3Schema '%s' is not supported", keyword) }
	switch {
	case p.ID != "":
		return unsupported("id")
	case p.Schema != "":
		return unsupported("schema")
	case p.Ref != nil && *p.Ref != "":
		return unsupported("$ref")
	case len(p.PatternProperties) > 0:
		return unsupported("patternProperties")
	case len(p.Dependencies) > 0:
		return unsupported("dependencies")
	case p.AdditionalItems != nil:
		return unsupported("additionalItems")
	case len(p.Definitions) > 0:
		return unsupported("definitions")
	}
	if err := w.check(p.Not, depth); err != nil {
		return err
	}
	for _, list := range [...][]apiextensionsv1.JSONSchemaProps{p.AllOf, p.AnyOf, p.OneOf} {
		for i := range list {
			if err := w.check(&list[i], depth); err != nil {
				return err
			}
		}
	}
	if p.XPreserveUnknownFields != nil && !*p.XPreserveUnknownFields {
		return errors.New("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined")
	}
	if p.Items != nil {
		if len(p.Items.JSONSchemas) > 0 {
			return errors.New("OpenAPIV3Schema 'items' must be a schema, but is an array")
		}
		if err := w.check(p.Items.Schema, depth); err != nil {
			return err
		}
	}
	for k := range p.Properties {
		c := w.slot(depth)
		*c = p.Properties[k]
		if err := w.check(c, depth+1); err != nil {
			return err
		}
	}
	if p.AdditionalProperties != nil {
		return w.check(p.AdditionalProperties.Schema, depth)
	}
	return nil
}

// CheckStructural returns the violations of the structural rules; path is the place of props. The schema must have
// passed CheckSupported.
func CheckStructural(props *apiextensionsv1.JSONSchemaProps, path *field.Path) field.ErrorList {
	return checkStructural(props, &spot{base: path}, nil)
}

// checkStructural takes the patterns out of a budget; nil is a full one.
func checkStructural(props *apiextensionsv1.JSONSchemaProps, at *spot, patterns *format.Patterns) field.ErrorList {
	if patterns == nil {
		patterns = new(format.Patterns)
	}
	w := structural{patterns: patterns}
	w.node(props, rootLevel, at, 0)
	w.complete(props, props, at, at, 0)
	slices.SortFunc(w.errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	return w.errs
}

// structural collects violations. Schemas outside of allOf, anyOf, oneOf and not are nodes and define the structure.
// Schemas inside are clauses and may only restrict values.
type structural struct {
	scratch
	errs     field.ErrorList
	patterns *format.Patterns
}

func (w *structural) add(e *field.Error) { w.errs = append(w.errs, e) }

// level is the position of a node, which determines the requirements on its type.
type level int

const (
	rootLevel level = iota
	itemLevel
	fieldLevel
)

func (w *structural) node(p *apiextensionsv1.JSONSchemaProps, lvl level, at *spot, depth int) {
	if p == nil {
		return
	}
	items := itemsOf(p)
	if p.Type == "array" && items == nil {
		w.add(field.Required(at.child("items"), "must be specified"))
	}
	w.node(items, itemLevel, &spot{up: at, name: "items"}, depth)
	for k := range p.Properties {
		c := w.slot(depth)
		*c = p.Properties[k]
		w.node(c, fieldLevel, &spot{up: at, name: "properties", key: k, kind: keySpot}, depth+1)
	}
	if p.AdditionalProperties != nil {
		if lvl == rootLevel {
			w.add(field.Forbidden(at.child("additionalProperties"), "must not be used at the root"))
		}
		w.node(p.AdditionalProperties.Schema, fieldLevel, &spot{up: at, name: "additionalProperties"}, depth)
	}
	if p.XIntOrString && preserves(p) {
		w.add(field.Invalid(at.child("x-kubernetes-preserve-unknown-fields"), true,
			"must be false if x-kubernetes-int-or-string is true"))
	}
	if p.XIntOrString && p.XEmbeddedResource {
		w.add(field.Invalid(at.child("x-kubernetes-embedded-resource"), true,
			"must be false if x-kubernetes-int-or-string is true"))
	}
	w.values(p, isIntOrString(p.AnyOf), len(p.AllOf) > 0 && isIntOrString(p.AllOf[0].AnyOf), at, depth)
	w.nodeType(p, lvl, at)
	w.meta(p, lvl, at)
}

// nodeType checks a node's type against its level and its extensions.
func (w *structural) nodeType(p *apiextensionsv1.JSONSchemaProps, lvl level, at *spot) {
	switch {
	case p.XEmbeddedResource && p.Type == "":
		w.add(field.Required(at.child("type"), "must be object if x-kubernetes-embedded-resource is true"))
	case p.XEmbeddedResource && p.Type != "object":
		w.add(field.Invalid(at.child("type"), p.Type, "must be object if x-kubernetes-embedded-resource is true"))
	case p.XEmbeddedResource:
	case p.Type == "" && !p.XIntOrString && !preserves(p):
		where := "at the root"
		switch lvl {
		case itemLevel:
			where = "for specified array items"
		case fieldLevel:
			where = "for specified object fields"
		}
		w.add(field.Required(at.child("type"), "must not be empty "+where))
	}
	if p.XEmbeddedResource && p.AdditionalProperties != nil {
		w.add(field.Forbidden(at.child("additionalProperties"),
			"must not be used if x-kubernetes-embedded-resource is set"))
	}
	if lvl == rootLevel && p.Type != "" && p.Type != "object" {
		w.add(field.Invalid(at.child("type"), p.Type, "must be object at the root"))
	}
	if p.XEmbeddedResource && !preserves(p) && len(p.Properties) == 0 {
		w.add(field.Required(at.child("properties"),
			"must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"))
	}
}

// meta checks kind, apiVersion and metadata, which the root and embedded objects have implicitly.
func (w *structural) meta(p *apiextensionsv1.JSONSchemaProps, lvl level, at *spot) {
	object := lvl == rootLevel || p.XEmbeddedResource
	for _, name := range [...]string{"kind", "apiVersion"} {
		if c, ok := p.Properties[name]; ok && object && c.Type != "string" {
			w.add(field.Invalid(at.child("properties").Key(name).Child("type"), c.Type, "must be string"))
		}
	}
	c, ok := p.Properties["metadata"]
	if !ok {
		return
	}
	path := at.child("properties").Key("metadata")
	if object && c.Type != "object" {
		w.add(field.Invalid(path.Child("type"), c.Type, "must be object"))
	}
	if lvl != rootLevel {
		return
	}
	if namesOnly(c.Properties) {
		c.Properties = nil
	}
	c.Type = ""
	c.Default = nil
	if !isEmptySchema(c) || c.AdditionalProperties != nil {
		w.add(field.Forbidden(path,
			"must not specify anything other than name and generateName, but metadata is implicitly specified"))
	}
}

func namesOnly(m map[string]apiextensionsv1.JSONSchemaProps) bool {
	for k := range m {
		if k != "name" && k != "generateName" {
			return false
		}
	}
	return true
}

// values checks the value validations of a node or clause. skipAnyOf and skipFirst mark the two spellings of
// int-or-string that allow "type" where a structural schema otherwise forbids it.
func (w *structural) values(p *apiextensionsv1.JSONSchemaProps, skipAnyOf, skipFirst bool, at *spot, depth int) {
	if !skipAnyOf {
		for i := range p.AnyOf {
			w.clause(&p.AnyOf[i], false, &spot{up: at, name: "anyOf", index: i, kind: indexSpot}, depth)
		}
	}
	for i := range p.AllOf {
		w.clause(&p.AllOf[i], skipFirst && i == 0, &spot{up: at, name: "allOf", index: i, kind: indexSpot}, depth)
	}
	for i := range p.OneOf {
		w.clause(&p.OneOf[i], false, &spot{up: at, name: "oneOf", index: i, kind: indexSpot}, depth)
	}
	w.clause(p.Not, false, &spot{up: at, name: "not"}, depth)
	if p.Pattern != "" {
		if _, err := syntax.Parse(p.Pattern, syntax.Perl); err != nil {
			w.add(field.Invalid(at.child("pattern"), p.Pattern,
				fmt.Sprintf("must be a valid regular expression, but isn't: %v", err)))
		} else if err := w.patterns.Take(p.Pattern); err != nil {
			w.add(field.Invalid(at.child("pattern"), p.Pattern, err.Error()))
		}
	}
}

func (w *structural) clause(p *apiextensionsv1.JSONSchemaProps, skipAnyOf bool, at *spot, depth int) {
	if p == nil {
		return
	}
	w.values(p, skipAnyOf, false, at, depth)
	w.clause(itemsOf(p), false, &spot{up: at, name: "items"}, depth)
	for k := range p.Properties {
		c := w.slot(depth)
		*c = p.Properties[k]
		w.clause(c, false, &spot{up: at, name: "properties", key: k, kind: keySpot}, depth+1)
	}
	forbid := func(set bool, keyword, be string) {
		if set {
			w.add(field.Forbidden(at.child(keyword), "must be "+be+" to be structural"))
		}
	}
	forbid(p.Type != "", "type", "empty")
	forbid(p.AdditionalProperties != nil && (p.AdditionalProperties.Schema != nil || p.AdditionalProperties.Allows),
		"additionalProperties", "undefined")
	forbid(p.Default != nil && len(p.Default.Raw) > 0, "default", "undefined")
	forbid(p.Title != "", "title", "empty")
	forbid(p.Description != "", "description", "empty")
	forbid(p.Nullable, "nullable", "false")
	forbid(preserves(p), "x-kubernetes-preserve-unknown-fields", "false")
	forbid(p.XEmbeddedResource, "x-kubernetes-embedded-resource", "false")
	forbid(p.XIntOrString, "x-kubernetes-int-or-string", "false")
	forbid(len(p.XListMapKeys) > 0, "x-kubernetes-list-map-keys", "empty")
	forbid(p.XListType != nil, "x-kubernetes-list-type", "undefined")
	forbid(p.XMapType != nil, "x-kubernetes-map-type", "undefined")
	forbid(len(p.XValidations) > 0, "x-kubernetes-validations", "empty")
	if _, ok := p.Properties["metadata"]; ok {
		w.add(field.Forbidden(at.child("properties").Key("metadata"), "must not be specified in a nested context"))
	}
}

// complete checks that every field restricted by the clauses of the root is also specified outside of them. v is the
// node or clause at vAt, s the corresponding node at sAt.
func (w *structural) complete(v, s *apiextensionsv1.JSONSchemaProps, sAt, vAt *spot, depth int) {
	w.completeClause(v.Not, s, sAt, &spot{up: vAt, name: "not"}, depth)
	for i := range v.AllOf {
		w.completeClause(&v.AllOf[i], s, sAt, &spot{up: vAt, name: "allOf", index: i, kind: indexSpot}, depth)
	}
	for i := range v.AnyOf {
		w.completeClause(&v.AnyOf[i], s, sAt, &spot{up: vAt, name: "anyOf", index: i, kind: indexSpot}, depth)
	}
	for i := range v.OneOf {
		w.completeClause(&v.OneOf[i], s, sAt, &spot{up: vAt, name: "oneOf", index: i, kind: indexSpot}, depth)
	}
}

func (w *structural) completeClause(v, s *apiextensionsv1.JSONSchemaProps, sAt, vAt *spot, depth int) {
	if v == nil {
		return
	}
	if s == nil {
		w.add(field.Required(sAt.path(), fmt.Sprintf("because it is defined in %s", vAt.path())))
		return
	}
	w.complete(v, s, sAt, vAt, depth)
	w.completeClause(itemsOf(v), itemsOf(s), &spot{up: sAt, name: "items"}, &spot{up: vAt, name: "items"}, depth)
	for k := range v.Properties {
		sChild := &spot{up: sAt, name: "properties", key: k, kind: keySpot}
		vChild := &spot{up: vAt, name: "properties", key: k, kind: keySpot}
		if _, ok := s.Properties[k]; !ok {
			w.add(field.Required(sChild.path(), fmt.Sprintf("because it is defined in %s", vChild.path())))
			continue
		}
		vc, sc := v.Properties[k], s.Properties[k]
		w.completeClause(&vc, &sc, sChild, vChild, depth)
	}
}

// itemsOf returns the schema of a list's items, or nil.
func itemsOf(p *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if p.Items == nil {
		return nil
	}
	return p.Items.Schema
}

func preserves(p *apiextensionsv1.JSONSchemaProps) bool {
	return p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields
}

// isIntOrString recognizes "anyOf: [{type: integer}, {type: string}]".
func isIntOrString(anyOf []apiextensionsv1.JSONSchemaProps) bool {
	if len(anyOf) != 2 || anyOf[0].Type != "integer" || anyOf[1].Type != "string" {
		return false
	}
	for _, p := range anyOf {
		p.Type = ""
		// A clause distinguishes "properties: {}" from none, but not "additionalProperties: false".
		a := p.AdditionalProperties
		if !isEmptySchema(p) || p.Properties != nil || a != nil && (a.Allows || a.Schema != nil) {
			return false
		}
	}
	return true
}

// isEmptySchema reports whether p says nothing, additionalProperties left aside. Empty lists count as said where
// Kubernetes' structural form keeps them.
func isEmptySchema(p apiextensionsv1.JSONSchemaProps) bool {
	p.AdditionalProperties = nil
	if len(p.Properties) == 0 {
		p.Properties = nil
	}
	if len(p.Enum) == 0 {
		p.Enum = nil
	}
	if itemsOf(&p) == nil {
		p.Items = nil
	}
	for _, l := range [...]*[]apiextensionsv1.JSONSchemaProps{&p.AllOf, &p.AnyOf, &p.OneOf} {
		if len(*l) == 0 {
			*l = nil
		}
	}
	p.Ref, p.PatternProperties, p.Dependencies, p.Definitions = nil, nil, nil, nil
	return reflect.DeepEqual(p, apiextensionsv1.JSONSchemaProps{})
}
