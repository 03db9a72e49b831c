package schema

import (
	"encoding/json"
	"math/rand/v2"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// generator makes random structural schemas and objects near them. Its pools of names and values are small, so that
// objects often match the schemas' keywords.
type generator struct {
	*rand.Rand
	// wild is how often, in percent, a value is unlike its schema.
	wild int
}

var (
	names    = []string{"a", "b", "c", "d", "e", "kind", "apiVersion", "metadata", "x.y", "é"}
	texts    = []string{"", "a", "b", "ab", "abc", "é", "日本語", "z9", "A", "aaaaaaaaaaaa", "null"}
	integers = []int64{0, 1, 2, 3, 97, -1, 10, 1 << 31, 1<<53 + 1, -1 << 63}
	floats   = []float64{0, 1, 1.5, 0.1, -2, 2.5, 1e9, 1e19, 3.5e38, -0.5, 1000000.0001, 97}
	patterns = []string{"^a", "b$", "^[a-z]+$", "^.{1,3}$", "(", "é", `^\d`}
	formats  = []string{"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3",
		"uuid4", "uuid5", "isbn", "isbn10",
		"isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "date-time",
		"datetime", "k8s-short-name", "k8s-long-name",
		"int32", "int64", "float", "double", "quantity", "uint32"}
)

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

// in returns true in percent of a hundred calls.
func (g *generator) in(percent int) bool { return g.IntN(100) < percent }

func some[T any](v T) *T { return &v }

func raw(v any) apiextensionsv1.JSON {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return apiextensionsv1.JSON{Raw: b}
}

// root makes the schema of a whole resource.
func (g *generator) root() *apiextensionsv1.JSONSchemaProps {
	p := g.object(4)
	if p.Properties == nil {
		p.AdditionalProperties = nil
		p.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
	}
	p.Default = nil
	if g.in(70) {
		p.Properties["status"] = *g.schema(3)
	}
	return p
}

// schema makes a schema on the structural part.
func (g *generator) schema(depth int) *apiextensionsv1.JSONSchemaProps {
	var p *apiextensionsv1.JSONSchemaProps
	switch k := g.IntN(20); {
	case k < 6 && depth > 0:
		p = g.object(depth)
	case k < 11 && depth > 0:
		p = g.list(depth)
	case k < 14:
		p = &apiextensionsv1.JSONSchemaProps{Type: "string"}
		g.boundText(p)
	case k < 16:
		p = &apiextensionsv1.JSONSchemaProps{Type: "integer"}
		g.boundNumber(p)
	case k < 17:
		p = &apiextensionsv1.JSONSchemaProps{Type: "number"}
		g.boundNumber(p)
	case k < 18:
		p = &apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	case k < 19:
		p = g.intOrString()
	default:
		p = &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: some(true)}
		if g.in(50) {
			p.Type = "object"
		}
	}
	p.Nullable = g.in(15)
	g.generic(p, depth)
	if g.in(12) {
		p.Default = some(raw(g.value(p, 3)))
	}
	return p
}

func (g *generator) object(depth int) *apiextensionsv1.JSONSchemaProps {
	p := &apiextensionsv1.JSONSchemaProps{Type: "object"}
	switch {
	case g.in(70):
		p.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		for range 1 + g.IntN(5) {
			p.Properties[pick(g, names)] = *g.schema(depth - 1)
		}
	case g.in(70):
		p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: g.schema(depth - 1)}
	default:
		p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: g.in(70)}
	}
	if g.in(15) {
		p.XPreserveUnknownFields = some(true)
	}
	if g.in(12) {
		p.XEmbeddedResource = true
		delete(p.Properties, "metadata")
		if g.in(60) {
			p.XPreserveUnknownFields = some(true)
		}
	}
	if g.in(10) {
		p.XMapType = some(pick(g, []string{"granular", "atomic"}))
	}
	g.boundObject(p)
	return p
}

func (g *generator) list(depth int) *apiextensionsv1.JSONSchemaProps {
	p := &apiextensionsv1.JSONSchemaProps{Type: "array"}
	if g.in(90) {
		p.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: g.schema(depth - 1)}
	}
	switch g.IntN(5) {
	case 0:
		p.XListType = some("set")
	case 1, 2:
		p.XListType = some("map")
		p.XListMapKeys = []string{"a"}
		if g.in(50) {
			p.XListMapKeys = []string{"a", "b"}
		}
		item := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"a": *g.schema(0), "b": *g.schema(0), "c": *g.schema(depth - 1),
		}}
		if g.in(90) {
			p.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: item}
		}
	case 3:
		p.XListType = some("atomic")
	}
	if g.in(10) {
		p.XPreserveUnknownFields = some(true)
	}
	g.boundList(p)
	return p
}

func (g *generator) intOrString() *apiextensionsv1.JSONSchemaProps {
	p := &apiextensionsv1.JSONSchemaProps{XIntOrString: true}
	types := []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}
	switch g.IntN(3) {
	case 0:
		p.AnyOf = types
	case 1:
		p.AllOf = []apiextensionsv1.JSONSchemaProps{{AnyOf: types}, {Pattern: pick(g, patterns)}}
	}
	g.boundText(p)
	g.boundNumber(p)
	return p
}

// generic adds the keywords of any schema: enum and junctions.
func (g *generator) generic(p *apiextensionsv1.JSONSchemaProps, depth int) {
	if g.in(8) {
		for range 1 + g.IntN(4) {
			v := g.any(1)
			if g.in(60) {
				v = g.value(p, 1)
			}
			p.Enum = append(p.Enum, raw(v))
		}
	}
	for _, list := range []*[]apiextensionsv1.JSONSchemaProps{&p.AllOf, &p.AnyOf, &p.OneOf} {
		if g.in(6) {
			for range 1 + g.IntN(3) {
				*list = append(*list, *g.junction(p, depth))
			}
		}
	}
	if g.in(4) {
		p.Not = g.junction(p, depth)
	}
}

// junction makes a schema for below allOf, anyOf, oneOf or not of p.
func (g *generator) junction(p *apiextensionsv1.JSONSchemaProps, depth int) *apiextensionsv1.JSONSchemaProps {
	j := &apiextensionsv1.JSONSchemaProps{}
	if g.in(60) {
		g.boundText(j)
	}
	if g.in(30) {
		g.boundNumber(j)
	}
	if g.in(30) {
		g.boundList(j)
	}
	if g.in(50) {
		g.boundObject(j)
	}
	if g.in(10) {
		j.Type = pick(g, []string{"string", "integer", "number", "object", "array", "boolean"})
	}
	if depth > 0 {
		for name := range p.Properties {
			if g.in(50) {
				if j.Properties == nil {
					j.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
				}
				child := p.Properties[name]
				j.Properties[name] = *g.junction(&child, depth-1)
			}
		}
		if p.Items != nil && g.in(40) {
			j.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: g.junction(p.Items.Schema, depth-1)}
		}
		if a := p.AdditionalProperties; a != nil && a.Schema != nil && g.in(40) {
			j.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{
				Allows: true, Schema: g.junction(a.Schema, depth-1),
			}
		}
		g.generic(j, depth-1)
	}
	return j
}

func (g *generator) boundText(p *apiextensionsv1.JSONSchemaProps) {
	if g.in(15) {
		p.MaxLength = some(int64(g.IntN(5)))
	}
	if g.in(15) {
		p.MinLength = some(int64(g.IntN(4)))
	}
	if g.in(20) {
		p.Pattern = pick(g, patterns)
	}
	if g.in(30) {
		p.Format = pick(g, formats)
	}
}

func (g *generator) boundNumber(p *apiextensionsv1.JSONSchemaProps) {
	bound := func() *float64 {
		if g.in(50) {
			return some(float64(g.IntN(8) - 2))
		}
		return some(pick(g, floats))
	}
	if g.in(20) {
		p.Maximum = bound()
		p.ExclusiveMaximum = g.in(40)
	}
	if g.in(20) {
		p.Minimum = bound()
		p.ExclusiveMinimum = g.in(40)
	}
	if g.in(15) {
		p.MultipleOf = bound()
	}
	if g.in(30) {
		p.Format = pick(g, []string{"int32", "int64", "float", "double", "date"})
	}
}

func (g *generator) boundList(p *apiextensionsv1.JSONSchemaProps) {
	if g.in(15) {
		p.MaxItems = some(int64(g.IntN(4)))
	}
	if g.in(15) {
		p.MinItems = some(int64(g.IntN(3)))
	}
}

func (g *generator) boundObject(p *apiextensionsv1.JSONSchemaProps) {
	if g.in(10) {
		p.MaxProperties = some(int64(1 + g.IntN(4)))
	}
	if g.in(10) {
		p.MinProperties = some(int64(g.IntN(3)))
	}
	if g.in(30) {
		p.Required = append(p.Required, pick(g, names))
		for name := range p.Properties {
			if g.in(30) {
				p.Required = append(p.Required, name)
			}
		}
	}
}
