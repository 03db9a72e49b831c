package apply

import (
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Names of the types of undeclared values. structured-merge-diff defines the second.
var (
	untypedName = "__untyped_atomic_"
	deducedName = "__untyped_deduced_"
	rootName    = "object"
)

// parseable returns structured-merge-diff's type for objects at p, for the long way. It is a few times as large as the
// compiled schema, so it is made on first use.
func parseable(p position) typed.ParseableType {
	if p.node == deduced {
		return typed.DeducedParseableType
	}
	types := &typed.Parser{Schema: smdschema.Schema{Types: []smdschema.TypeDef{
		{Name: rootName, Atom: atom(p)},
		{Name: untypedName, Atom: smdschema.Atom{
			Scalar: scalar("untyped"),
			List:   &smdschema.List{ElementType: named(&untypedName), ElementRelationship: smdschema.Atomic},
			Map:    &smdschema.Map{ElementType: named(&untypedName), ElementRelationship: smdschema.Atomic},
		}},
		{Name: deducedName, Atom: smdschema.Atom{
			Scalar: scalar("untyped"),
			List:   &smdschema.List{ElementType: named(&untypedName), ElementRelationship: smdschema.Atomic},
			Map:    &smdschema.Map{ElementType: named(&deducedName), ElementRelationship: smdschema.Separable},
		}},
	}}}
	return types.Type(rootName)
}

func named(name *string) smdschema.TypeRef { return smdschema.TypeRef{NamedType: name} }

func scalar(s smdschema.Scalar) *smdschema.Scalar { return &s }

func ref(p position) smdschema.TypeRef {
	switch p.node {
	case deduced:
		return named(&deducedName)
	case untyped:
		return named(&untypedName)
	}
	return smdschema.TypeRef{Inlined: atom(p)}
}

func atom(p position) smdschema.Atom {
	var a smdschema.Atom
	isScalar, isList, isMap := p.shapes()
	if isScalar {
		a.Scalar = scalar(scalarType(p))
	}
	if isList {
		a.List = &smdschema.List{ElementType: ref(p.item()), ElementRelationship: smdschema.Associative}
		if p.atomicList() {
			a.List.ElementRelationship = smdschema.Atomic
		} else if p.node.ListType == "map" {
			a.List.Keys = p.node.ListMapKeys
		}
	}
	if isMap {
		a.Map = &smdschema.Map{}
		switch p.node.MapType {
		case "atomic":
			a.Map.ElementRelationship = smdschema.Atomic
		case "granular":
			a.Map.ElementRelationship = smdschema.Separable
		}
		if rest, ok := p.rest(); ok {
			a.Map.ElementType = ref(rest)
		}
		add := func(name string) {
			child, _, _ := p.field(name)
			a.Map.Fields = append(a.Map.Fields,
				smdschema.StructField{Name: name, Type: ref(child), Default: child.node.Default})
		}
		for name := range p.node.Properties {
			if p.implied(name) == nil {
				add(name)
			}
		}
		if p.root {
			add("apiVersion")
			add("kind")
			add("metadata")
		}
	}
	return a
}

// scalarType is the type of a scalar at p. Strings with a format may be anything.
func scalarType(p position) smdschema.Scalar {
	switch p.node.Type {
	case "integer", "number":
		return smdschema.Numeric
	case "boolean":
		return smdschema.Boolean
	case "string":
		if p.node.Format == "" || p.node.Format == "byte" {
			return smdschema.String
		}
	}
	return "untyped"
}
