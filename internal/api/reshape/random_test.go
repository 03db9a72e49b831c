package reshape

import (
	"fmt"
	"math/rand/v2"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

type props = apiextensionsv1.JSONSchemaProps

// maker makes two random schemas and the rules between them.
type maker struct {
	*rand.Rand
	count int
}

func (m *maker) name() string {
	m.count++
	return fmt.Sprintf("f%d", m.count)
}

func (m *maker) chance(n int) bool { return m.IntN(n) == 0 }

func scalarProps(kind string) props { return props{Type: kind} }

func objectProps() props {
	return props{Type: "object", Properties: map[string]props{}}
}

func listProps(items *props) props {
	return props{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: items}}
}

func mapProps(values *props) props {
	return props{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: values}}
}

// change is a pair of schemas for one field, with the verb and the parameters of its rule; no verb means that the field
// is the same, or that the contents of the field differ.
type change struct {
	a, b   props
	verb   string
	params object.Object
}

// leaf returns a random change of a field.
func (m *maker) leaf() change {
	text, integer := scalarProps("string"), scalarProps("integer")
	switch m.IntN(12) {
	case 0:
		return change{a: text, b: listProps(&text), verb: "wrap"}
	case 1:
		return change{a: text, b: text, verb: "enum", params: object.Object{
			"values": object.Object{"a": "b", "default": "b", "12": "true"}}}
	case 2:
		return change{a: integer, b: text, verb: "type"}
	case 3:
		return change{a: text, b: scalarProps("boolean"), verb: "type"}
	case 4:
		return change{a: integer, b: integer, verb: "scale", params: object.Object{"by": "1/60"}}
	case 5:
		return change{a: integer, b: text, verb: "quantity", params: object.Object{"unit": "Mi"}}
	case 6:
		return change{a: text, b: integer, verb: "duration", params: object.Object{"unit": "s"}}
	case 7:
		return change{a: text, b: text, verb: "default", params: object.Object{"value": "filled"}}
	case 8:
		nullable := text
		nullable.Nullable = true
		return change{a: nullable, b: text}
	case 9:
		value := integer
		values := mapProps(&value)
		item := props{Type: "object", Properties: map[string]props{"key": text, "value": value}}
		return change{a: values, b: listProps(&item),
			verb: "mapToList", params: object.Object{"key": "key", "valueField": "value"}}
	}
	return change{a: text, b: text}
}

// fill adds random fields to two objects, and returns the rules between them. others are objects in which fields may
// move.
func (m *maker) fill(a, b *props, depth int) (rules []any) {
	paths := []string{""}
	homes := []*props{b}
	for range 1 + m.IntN(5) {
		if depth > 0 && m.chance(3) {
			rules = append(rules, m.below(a, b, depth)...)
			continue
		}
		name := m.name()
		c := m.leaf()
		switch m.IntN(6) {
		case 0:
			a.Properties[name] = c.a // no place in b
			continue
		case 1:
			b.Properties[name] = c.b
			continue
		case 2:
			other := m.name() // a new object in b
			home := objectProps()
			b.Properties[other] = home
			paths, homes = append(paths, other+"."), append(homes, &home)
		}
		if c.verb == "" && differentProps(c) {
			a.Properties[name], b.Properties[name] = c.a, c.b
			continue
		}
		a.Properties[name] = c.a
		at := m.IntN(len(homes))
		to := m.name()
		homes[at].Properties[to] = c.b
		rule := object.Object{"to": paths[at] + to}
		for key, v := range c.params {
			rule[key] = v
		}
		if c.verb == "" {
			c.verb = "move"
		}
		rule[c.verb] = name
		rules = append(rules, rule)
	}
	return rules
}

func differentProps(c change) bool { return c.a.Nullable != c.b.Nullable }

// below adds an object, a list or a map with different contents.
func (m *maker) below(a, b *props, depth int) (rules []any) {
	x, y := objectProps(), objectProps()
	inner := m.fill(&x, &y, depth-1)
	name := m.name()
	switch m.IntN(3) {
	case 0:
		a.Properties[name], b.Properties[name] = x, y
		for _, r := range inner {
			rules = append(rules, prefixed(r.(object.Object), name))
		}
		return rules
	case 1:
		a.Properties[name] = listProps(&x)
		b.Properties[name] = listProps(&y)
	default:
		to := m.name()
		a.Properties[name] = mapProps(&x)
		b.Properties[to] = mapProps(&y)
		return []any{object.Object{"forEach": name, "to": to, "rules": inner}}
	}
	if len(inner) == 0 {
		return nil
	}
	return []any{object.Object{"forEach": name, "rules": inner}}
}

// prefixed returns a rule with other paths.
func prefixed(r object.Object, name string) object.Object {
	out := object.Object{}
	for key, v := range r {
		if text, ok := v.(string); ok && (key == "to" || verbs[key] != nil) {
			v = name + "." + text
		}
		out[key] = v
	}
	return out
}

// pair returns a random plan between v1 and v2, and its schemas.
func pair(t testing.TB, seed uint64) (*Plan, map[string]*schema.Schema, string) {
	t.Helper()
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 7))}
	a, b := objectProps(), objectProps()
	a.Properties["spec"], b.Properties["spec"] = objectProps(), objectProps()
	specA, specB := a.Properties["spec"], b.Properties["spec"]
	var rules []any
	for _, r := range m.fill(&specA, &specB, 3) {
		rules = append(rules, prefixed(r.(object.Object), "spec"))
	}
	if m.chance(2) {
		specA.Properties["team"] = scalarProps([]string{"string", "integer", "boolean"}[m.IntN(3)])
		rules = append(rules, object.Object{"type": "spec.team", "to": "metadata.annotations['example.com/team']"})
	}
	config := object.Object{"steps": []any{object.Object{"from": "v1", "to": "v2", "rules": rules}}}
	all := map[string]*schema.Schema{}
	for name, root := range map[string]props{"v1": a, "v2": b} {
		s, err := schema.Compile(&root, schema.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all[name] = s
	}
	text := string(codec.AppendJSON(nil, config))
	return plan(t, all, text), all, text
}

// TestRoundTrip converts random objects of random schemas by random rules there and back.
func TestRoundTrip(t *testing.T) {
	made := 0
	for seed := range uint64(300) {
		p, of, text := pair(t, seed)
		g := NewGenerator(seed)
		for i := range 40 {
			from, to := "v1", "v2"
			if i%2 == 1 {
				from, to = to, from
			}
			obj := g.Object(of[from])
			if obj == nil {
				continue
			}
			if i%3 == 0 {
				obj["metadata"].(object.Object)["annotations"] = object.Object{"example.com/team": g.text()}
			}
			made++
			if err := p.Trip(obj, from, to); err != nil {
				t.Fatalf("seed %d, from %s to %s by %s: %v", seed, from, to, text, err)
			}
		}
	}
	if made < 10_000 {
		t.Errorf("only %d objects", made)
	}
}
