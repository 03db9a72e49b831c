package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"
)

// compiler turns JSONSchemaProps into Nodes. Its zero value is ready.
type compiler struct {
	defaults bool // a default occurred
	rules    bool // a rule occurred
	shared   interner

	sensitive func(path []string) bool // Options.Sensitive
	formats   bool                     // the nodes keep formats that objects of their type do not have
}

// node compiles p. spine is true in the structural part of the schema, and false below allOf, anyOf, oneOf and not,
// where list types and embedded resources have no meaning. path leads to p.
func (c *compiler) node(p *apiextensionsv1.JSONSchemaProps, spine bool, path []string) (*Node, error) {
	if err := unsupported(p); err != nil {
		return nil, err
	}
	n := &Node{
		Type: p.Type, Format: p.Format, anyFormat: c.formats, Nullable: p.Nullable,
		Embedded: p.XEmbeddedResource, IntOrString: p.XIntOrString,
		ListMapKeys: p.XListMapKeys,
		Pattern:     p.Pattern, Required: p.Required,
		MaxItems: p.MaxItems, MaxLength: p.MaxLength, MaxProps: p.MaxProperties,
		MinItems: p.MinItems, MinLength: p.MinLength, MinProps: p.MinProperties,
		Minimum: p.Minimum, Maximum: p.Maximum, MultipleOf: p.MultipleOf,
		ExclusiveMinimum: p.ExclusiveMinimum, ExclusiveMaximum: p.ExclusiveMaximum,
		Rules: p.XValidations, Sensitive: c.sensitive != nil && spine && c.sensitive(path),
	}
	if p.XPreserveUnknownFields != nil {
		if !*p.XPreserveUnknownFields {
			return nil, errors.New("'x-kubernetes-preserve-unknown-fields' must be true or undefined")
		}
		n.PreserveUnknown = true
	}
	if p.XListType != nil {
		n.ListType = *p.XListType
	}
	if p.XMapType != nil {
		n.MapType = *p.XMapType
	}
	if err := c.values(n, p); err != nil {
		return nil, err
	}
	if err := c.children(n, p, spine, path); err != nil {
		return nil, err
	}
	if err := c.junctions(n, p); err != nil {
		return nil, err
	}
	c.rules = c.rules || len(n.Rules) > 0
	n.prepare(spine, &c.shared)
	return c.shared.node(n), nil
}

// unsupported refuses the keywords that structural schemas do not have.
func unsupported(p *apiextensionsv1.JSONSchemaProps) error {
	for _, k := range []struct {
		name string
		used bool
	}{
		{"id", p.ID != ""},
		{"schema", p.Schema != ""},
		{"$ref", p.Ref != nil && *p.Ref != ""},
		{"patternProperties", len(p.PatternProperties) > 0},
		{"dependencies", len(p.Dependencies) > 0},
		{"additionalItems", p.AdditionalItems != nil},
		{"definitions", len(p.Definitions) > 0},
	} {
		if k.used {
			return fmt.Errorf("OpenAPIV3Schema '%s' is not supported", k.name)
		}
	}
	return nil
}

// values decodes the JSON values of p: its enum and its default.
func (c *compiler) values(n *Node, p *apiextensionsv1.JSONSchemaProps) (err error) {
	if p.Enum != nil {
		n.Enum = make([]any, len(p.Enum))
		for i := range p.Enum {
			if n.Enum[i], err = decodeValue(p.Enum[i].Raw); err != nil {
				return fmt.Errorf("enum value %d: %w", i, err)
			}
		}
	}
	if p.Default != nil {
		n.HasDefault = true
		if n.Default, err = decodeValue(p.Default.Raw); err != nil {
			return fmt.Errorf("default: %w", err)
		}
		c.defaults = c.defaults || n.Default != nil
	}
	return nil
}

// decodeValue decodes JSON as a request's object is decoded. No bytes at all are a null.
func decodeValue(raw []byte) (v any, err error) {
	if len(raw) == 0 {
		return nil, nil
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(raw, &v)
	return v, err
}

// children compiles items, properties and additionalProperties.
func (c *compiler) children(
	n *Node, p *apiextensionsv1.JSONSchemaProps, spine bool, path []string,
) (err error) {
	if p.Items != nil {
		if len(p.Items.JSONSchemas) > 0 {
			return errors.New("OpenAPIV3Schema 'items' must be a schema, but is an array")
		}
		if p.Items.Schema != nil {
			if n.Items, err = c.node(p.Items.Schema, spine, c.below(path, "")); err != nil {
				return err
			}
		}
	}
	if len(p.Properties) > 0 {
		n.Properties = make(map[string]*Node, len(p.Properties))
		n.fields = make([]property, 0, len(p.Properties))
		for name := range p.Properties {
			props := p.Properties[name]
			child, err := c.property(name, &props, spine, c.below(path, name))
			if err != nil {
				return err
			}
			n.Properties[name] = child
			n.fields = append(n.fields, property{name, child})
		}
		slices.SortFunc(n.fields, func(a, b property) int { return strings.Compare(a.name, b.name) })
	}
	if a := p.AdditionalProperties; a != nil {
		n.flags |= hasAdditional
		if !a.Allows && a.Schema == nil {
			n.flags |= closed
		}
		if a.Schema == nil {
			n.AllowsAdditional = a.Allows
		} else if n.AdditionalProperties, err = c.node(a.Schema, spine, c.below(path, "")); err != nil {
			return err
		}
	}
	return nil
}

// below returns the path of a child, if it is needed.
func (c *compiler) below(path []string, name string) []string {
	if c.sensitive == nil {
		return nil
	}
	return append(slices.Clip(path), name)
}

// property compiles a property. The implicit properties of every resource are not shared with other places, because
// pruning treats their defaults differently.
func (c *compiler) property(
	name string, p *apiextensionsv1.JSONSchemaProps, spine bool, path []string,
) (*Node, error) {
	if !isMeta(name) {
		return c.node(p, spine, path)
	}
	outside := c.shared.nodes
	c.shared.nodes = nil
	defer func() { c.shared.nodes = outside }()
	return c.node(p, spine, path)
}

// junctions compiles allOf, anyOf, oneOf and not.
func (c *compiler) junctions(n *Node, p *apiextensionsv1.JSONSchemaProps) (err error) {
	for _, j := range []struct {
		in  []apiextensionsv1.JSONSchemaProps
		out *[]*Node
	}{{p.AllOf, &n.AllOf}, {p.AnyOf, &n.AnyOf}, {p.OneOf, &n.OneOf}} {
		for i := range j.in {
			child, err := c.node(&j.in[i], false, nil)
			if err != nil {
				return err
			}
			*j.out = append(*j.out, child)
		}
	}
	if p.Not != nil {
		n.Not, err = c.node(p.Not, false, nil)
	}
	return err
}

// prepare derives the fields for validation and normalization from the keywords.
func (n *Node) prepare(spine bool, shared *interner) {
	n.types = declaredKinds(n)
	known := n.knownFormat()
	n.accepts = acceptedKinds(n.types, known)
	n.format = stringFormat(known)
	n.numeric = newNumeric(n, known)
	if n.Pattern != "" {
		n.pattern, n.size, n.badRE = shared.pattern(n.Pattern)
	}
	if n.MaxLength != nil || n.MinLength != nil || n.Pattern != "" || n.format != nil {
		n.flags |= hasText
	}
	if len(n.AllOf)+len(n.AnyOf)+len(n.OneOf) > 0 || n.Not != nil {
		n.flags |= hasJunctions
	}
	if len(n.fields) > 0 || n.flags.has(hasAdditional) {
		n.flags |= boundsChildren
	}
	if len(n.Rules) > 0 || n.Default != nil && !isScalar(n.Default) || n.Sensitive {
		n.flags |= unique
	}
	if spine {
		n.prepareSpine()
	}
}

// prepareSpine derives the fields that only the structural part of a schema has.
func (n *Node) prepareSpine() {
	switch n.ListType {
	case "set":
		n.flags |= listSet | listsBelow
	case "map":
		n.flags |= listMap | listsBelow
	}
	if n.Embedded {
		n.flags |= metaBelow
	}
	if n.Default != nil {
		n.flags |= defaultsBelow
	}
	if n.types&kindObject != 0 && len(n.fields) == 0 && !n.flags.has(hasAdditional) && !n.PreserveUnknown {
		n.flags |= looseBelow
	}
	if n.PreserveUnknown && slices.ContainsFunc(n.children(), mayPrune) {
		n.flags |= looseBelow
	}
	const below = metaBelow | listsBelow | defaultsBelow | looseBelow
	for _, f := range n.fields {
		n.flags |= f.node.flags & below
	}
	if n.Items != nil {
		n.flags |= n.Items.flags & below
	}
	if n.AdditionalProperties != nil {
		n.flags |= n.AdditionalProperties.flags & below
	}
}

// children returns the nodes of nested values.
func (n *Node) children() []*Node {
	out := []*Node{n.Items, n.AdditionalProperties}
	for _, f := range n.fields {
		out = append(out, f.node)
	}
	return slices.DeleteFunc(out, func(c *Node) bool { return c == nil })
}

// mayPrune reports whether unknown fields of an object at n or below it are pruned. A node that preserves them decides
// for itself and everything below it.
func mayPrune(n *Node) bool {
	if n.PreserveUnknown {
		return false
	}
	isObject := n.types == 0 || n.types&kindObject != 0
	return isObject && !n.flags.has(hasAdditional) || slices.ContainsFunc(n.children(), mayPrune)
}

// declaredKinds is the set of types that n declares; 0 means any.
func declaredKinds(n *Node) kinds {
	if n.IntOrString {
		return kindInteger | kindString
	}
	switch n.Type {
	case "":
		return 0
	case "object":
		return kindObject
	case "array":
		return kindArray
	case "string":
		return kindString
	case "integer":
		return kindInteger
	case "number":
		return kindNumber
	case "boolean":
		return kindBoolean
	}
	return kindUnknown
}

// acceptedKinds returns the set of types that pass the type check. A float with an integer value passes where integers
// do.
//
// For compatibility, a format widens the set: unless the type is numeric, a node with a known format accepts every
// string and every array.
func acceptedKinds(types kinds, format string) kinds {
	switch {
	case types == 0 && format == "":
		return ^kinds(0)
	case types&kindNumber != 0:
		types |= kindInteger
	}
	if format != "" && types&(kindInteger|kindNumber) == 0 {
		types |= kindString | kindArray
	}
	return types
}
