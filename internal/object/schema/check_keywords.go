package schema

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// types are the values of "type", as messages list them.
var types = []string{"array", "boolean", "integer", "number", "object", "string"}

// keywords checks the rules for single keywords, which apply everywhere, including clauses.
type keywords struct {
	scratch
	options CheckOptions
	errs    field.ErrorList
}

func (k *keywords) add(e *field.Error) { k.errs = append(k.errs, e) }

// keywordContext holds facts from the enclosing schemas.
type keywordContext struct {
	insideMeta bool   // inside apiVersion, kind or metadata of the root or of an embedded object
	noDefaults string // reason why defaults are forbidden, "" if they are allowed
}

func (k *keywords) check(p *apiextensionsv1.JSONSchemaProps, at *spot, c keywordContext, root bool, depth int) {
	if p == nil {
		return
	}
	k.forbidden(p, at, c)
	if a := p.AdditionalProperties; a != nil {
		if len(p.Properties) != 0 && (!a.Allows || a.Schema != nil) {
			k.add(field.Forbidden(at.child("additionalProperties"),
				"additionalProperties and properties are mutual exclusive"))
		}
		inside := c
		if c.insideMeta {
			inside.noDefaults = "inside additionalProperties applying to object metadata"
		}
		k.check(a.Schema, &spot{up: at, name: "additionalProperties"}, inside, false, depth)
	}
	for name := range p.Properties {
		inside := c
		if (root || p.XEmbeddedResource) && (name == "metadata" || name == "kind" || name == "apiVersion") {
			inside.insideMeta = true
			if root {
				inside.noDefaults = "in top-level " + name
			}
		}
		child := k.slot(depth)
		*child = p.Properties[name]
		k.check(child, &spot{up: at, name: "properties", key: name, kind: keySpot}, inside, false, depth+1)
	}
	k.check(p.Not, &spot{up: at, name: "not"}, c, false, depth)
	k.list(p.AllOf, at, "allOf", c, depth)
	k.list(p.OneOf, at, "oneOf", c, depth)
	k.list(p.AnyOf, at, "anyOf", c, depth)
	for name := range p.Definitions {
		child := k.slot(depth)
		*child = p.Definitions[name]
		k.check(child, &spot{up: at, name: "definitions", key: name, kind: keySpot}, c, false, depth+1)
	}
	if p.Items != nil {
		k.check(p.Items.Schema, &spot{up: at, name: "items"}, c, false, depth)
		k.list(p.Items.JSONSchemas, at, "items", c, depth)
	}
	for name, d := range p.Dependencies {
		k.check(d.Schema, &spot{up: at, name: "dependencies", key: name, kind: keySpot}, c, false, depth)
	}
	k.extensions(p, at)
	k.rules(p, at)
}

func (k *keywords) list(l []apiextensionsv1.JSONSchemaProps, at *spot, name string, c keywordContext, depth int) {
	for i := range l {
		k.check(&l[i], &spot{up: at, name: name, index: i, kind: indexSpot}, c, false, depth)
	}
}

// forbidden checks for keywords and values that no schema may have.
func (k *keywords) forbidden(p *apiextensionsv1.JSONSchemaProps, at *spot, c keywordContext) {
	if !k.options.AllowUnknownTypes && p.Type != "" && !slices.Contains(types, p.Type) {
		k.add(field.NotSupported(at.child("type"), p.Type, types))
	}
	if p.Default != nil && c.noDefaults != "" {
		k.add(field.Forbidden(at.child("default"), "must not be set "+c.noDefaults))
	}
	no := func(set bool, keyword, why string) {
		if set {
			k.add(field.Forbidden(at.child(keyword), why))
		}
	}
	no(p.ID != "", "id", "id is not supported")
	no(p.AdditionalItems != nil, "additionalItems", "additionalItems is not supported")
	no(len(p.PatternProperties) != 0, "patternProperties", "patternProperties is not supported")
	no(len(p.Definitions) != 0, "definitions", "definitions is not supported")
	no(p.Dependencies != nil, "dependencies", "dependencies is not supported")
	no(p.Ref != nil, "$ref", "$ref is not supported")
	no(p.Type == "null", "type", "type cannot be set to null, use nullable as an alternative")
	no(p.Items != nil && len(p.Items.JSONSchemas) != 0, "items", "items must be a schema object and not an array")
	no(c.insideMeta && p.XEmbeddedResource, "x-kubernetes-embedded-resource",
		"must not be used inside of resource meta")
	no(p.UniqueItems, "uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic")
}
