// Package rulegen generates random CEL rules and objects for the tests of package cel and for comparisons with
// upstream. It belongs to the schema in ../testdata/schema.yaml.
package rulegen

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Generator generates random rules for the spec of the schema, mostly well typed, and random objects.
type Generator struct {
	*rand.Rand
	vars map[string][]string // variables of enclosing loops, by type
	next int
}

// New returns a generator with two seeds.
func New(seed1, seed2 uint64) *Generator {
	return &Generator{Rand: rand.New(rand.NewPCG(seed1, seed2)), vars: map[string][]string{}}
}

func (g *Generator) pick(from ...string) string { return from[g.IntN(len(from))] }

// self is a reference to the new or, sometimes, the old value.
func (g *Generator) self() string {
	if g.IntN(12) == 0 {
		return "oldSelf"
	}
	return "self"
}

// leaf is a field, a variable or a literal of a type.
func (g *Generator) leaf(kind string, fields []string, literals ...string) string {
	if vars := g.vars[kind]; len(vars) > 0 && g.IntN(2) == 0 {
		return g.pick(vars...)
	}
	if g.IntN(4) == 0 {
		return g.pick(literals...)
	}
	return g.self() + "." + g.pick(fields...)
}

// loop evaluates body with a new variable of a type.
func (g *Generator) loop(kind string, body func() string) (name, text string) {
	g.next++
	name = fmt.Sprintf("v%d", g.next)
	g.vars[kind] = append(g.vars[kind], name)
	text = body()
	g.vars[kind] = g.vars[kind][:len(g.vars[kind])-1]
	return name, text
}

func (g *Generator) bool(depth int) string {
	if depth <= 0 {
		switch g.IntN(4) {
		case 0:
			return fmt.Sprintf("has(%s.%s)", g.self(),
				g.pick("str", "int", "set", "map1", "labels", "nul", "deep.a", "emb", "names.a__dash__b", "open.known"))
		case 1:
			return g.leaf("bool", []string{"bool"}, "true", "false")
		case 2:
			return g.int(0) + g.pick(" < ", " == ", " != ", " >= ") + g.int(0)
		}
		return g.Text(0) + g.pick(" == ", " != ", " < ") + g.Text(0)
	}
	d := depth - 1
	switch g.IntN(16) {
	case 0:
		return "(" + g.bool(d) + " && " + g.bool(d) + ")"
	case 1:
		return "(" + g.bool(d) + " || " + g.bool(d) + ")"
	case 2:
		return "!" + g.bool(d)
	case 3:
		return "(" + g.bool(d) + " ? " + g.bool(d) + " : " + g.bool(d) + ")"
	case 4:
		return g.int(d) + g.pick(" < ", " <= ", " == ", " != ", " > ") + g.int(d)
	case 5:
		return g.Text(d) + g.pick(" == ", " != ") + g.Text(d)
	case 6:
		return g.Text(d) + g.pick(".startsWith(", ".contains(", ".endsWith(", ".matches(") + g.Text(0) + ")"
	case 7:
		return g.ints(d) + g.pick(" == ", " != ") + g.ints(d)
	case 8:
		return g.strings(d) + g.pick(" == ", " != ") + g.strings(d)
	case 9:
		return g.int(0) + " in " + g.ints(d)
	case 10:
		return g.Text(0) + " in " + g.pick(g.strings(d), g.self()+".labels")
	case 11:
		v, body := g.loop("int", func() string { return g.bool(d) })
		return fmt.Sprintf("%s.%s(%s, %s)", g.ints(d), g.pick("all", "exists", "exists_one"), v, body)
	case 12:
		v, body := g.loop("string", func() string { return g.bool(d) })
		return fmt.Sprintf("%s.%s(%s, %s)", g.strings(d), g.pick("all", "exists", "exists_one"), v, body)
	case 13:
		v, body := g.loop("item", func() string { return g.item() + ".name" + g.pick(" == ", " != ") + g.Text(d) })
		return fmt.Sprintf("%s.map1.%s(%s, %s)", g.self(), g.pick("all", "exists", "exists_one"), v, body)
	case 14:
		f := g.pick("map1", "map2", "labels", "objs", "any", "open", "emb", "names", "deep", "nulobj", "nuls", "ios",
			"dur", "date", "time", "bytes", "num", "atomicmap", "nested")
		return g.self() + "." + f + g.pick(" == ", " != ") + g.self() + "." + f
	}
	return g.pick("sets.contains(", "sets.intersects(", "sets.equivalent(") + g.strings(d) + ", " + g.strings(d) + ")"
}

func (g *Generator) item() string {
	if vars := g.vars["item"]; len(vars) > 0 {
		return g.pick(vars...)
	}
	return g.self() + ".map1[0]"
}

func (g *Generator) int(depth int) string {
	if depth <= 0 || g.IntN(3) == 0 {
		return g.leaf("int",
			[]string{"int", "int", "int32", "open.__in__", "names.__if__", "emb.spec.x", "atomic[0]", "map1[0].value"},
			"0", "1", "-3", "5", "7u")
	}
	d := depth - 1
	switch g.IntN(6) {
	case 0:
		return "(" + g.int(d) + g.pick(" + ", " - ", " * ", " / ", " % ") + g.int(d) + ")"
	case 1:
		return "size(" + g.pick(g.ints(d), g.strings(d), g.Text(d), g.self()+".labels") + ")"
	case 2:
		return g.ints(d) + g.pick(".sum()", ".min()", ".max()", ".indexOf(1)", "[0]")
	case 3:
		return g.Text(d) + ".size()"
	case 4:
		return "(" + g.bool(0) + " ? " + g.int(d) + " : " + g.int(d) + ")"
	}
	return g.item() + ".value"
}

// Text returns an expression of type string.
func (g *Generator) Text(depth int) string {
	if depth <= 0 || g.IntN(3) == 0 {
		return g.leaf("string",
			[]string{"str", "str", "text", "enum", "nul", "names.a__dash__b", "names.namespace", "deep.a.b.c",
				"labels['app']", "strs[0]", "set[0]", "map1[0].name", "emb.metadata.name"}, "'a'", "''", "'hello'",
			"'☃'")
	}
	d := depth - 1
	switch g.IntN(7) {
	case 0:
		return "(" + g.Text(d) + " + " + g.Text(d) + ")"
	case 1:
		return g.Text(d) + g.pick(".lowerAscii()", ".upperAscii()", ".trim()", ".substring(1)", ".charAt(0)",
			".replace('l', 'L')", ".find('[a-c]+')")
	case 2:
		return g.strings(d) + g.pick(".join(',')", "[0]", "[1]")
	case 3:
		return "string(" + g.int(d) + ")"
	case 4:
		return "(" + g.bool(0) + " ? " + g.Text(d) + " : " + g.Text(d) + ")"
	case 5:
		return fmt.Sprintf("%s.?%s.orValue(%s)", g.self(), g.pick("str", "nul", "text"), g.Text(0))
	}
	return g.item() + ".name"
}

func (g *Generator) ints(depth int) string {
	if depth <= 0 || g.IntN(3) == 0 {
		return g.leaf("ints", []string{"atomic", "iset"}, "[1, 2, 3]", "[1]", "lists.range(3)")
	}
	d := depth - 1
	switch g.IntN(5) {
	case 0:
		return "(" + g.ints(d) + " + " + g.ints(d) + ")"
	case 1:
		v, body := g.loop("int", func() string { return g.bool(d) })
		return fmt.Sprintf("%s.filter(%s, %s)", g.ints(d), v, body)
	case 2:
		v, body := g.loop("int", func() string { return g.int(d) })
		return fmt.Sprintf("%s.map(%s, %s)", g.ints(d), v, body)
	case 3:
		return g.ints(d) + g.pick(".sort()", ".reverse()", ".distinct()", ".slice(0, 1)")
	}
	v, body := g.loop("item", func() string { return g.item() + ".value" })
	return fmt.Sprintf("%s.map1.map(%s, %s)", g.self(), v, body)
}

func (g *Generator) strings(depth int) string {
	if depth <= 0 || g.IntN(3) == 0 {
		return g.leaf("strings", []string{"set", "strs", "nested[0]", "map1[0].tags"}, "['a', 'b', 'c']", "['a']")
	}
	d := depth - 1
	switch g.IntN(5) {
	case 0:
		return "(" + g.strings(d) + " + " + g.strings(d) + ")"
	case 1:
		v, body := g.loop("string", func() string { return g.bool(d) })
		return fmt.Sprintf("%s.filter(%s, %s)", g.strings(d), v, body)
	case 2:
		v, body := g.loop("string", func() string { return g.Text(d) })
		return fmt.Sprintf("%s.map(%s, %s)", g.strings(d), v, body)
	case 3:
		return g.Text(d) + g.pick(".split(',')", ".findAll('l')")
	}
	return g.self() + ".nested" + g.pick(".flatten()", "[0]", "[1]")
}

// Rule returns a rule, now and then with a flaw.
func (g *Generator) Rule() string {
	text := g.bool(1 + g.IntN(3))
	switch g.IntN(25) {
	case 0:
		return text + g.pick(")", " &&", " == 1", ".x", " + 'a'")
	case 1:
		return strings.Replace(text, "self.", g.pick("self.spec.", "me.", "self.?", ""), 1)
	}
	return text
}

// Object mixes the specs of samples.
func (g *Generator) Object(samples []map[string]any) map[string]any {
	base := samples[g.IntN(len(samples))]
	spec := map[string]any{"str": "mixed"}
	for _, s := range samples {
		for k, v := range s["spec"].(map[string]any) {
			if _, ok := spec[k]; g.IntN(8) > 0 && (!ok || g.IntN(2) == 0) {
				spec[k] = v
			}
		}
	}
	return map[string]any{
		"apiVersion": base["apiVersion"], "kind": base["kind"], "metadata": base["metadata"], "spec": spec,
	}
}
