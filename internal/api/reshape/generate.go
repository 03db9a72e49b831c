package reshape

import (
	"math/rand/v2"
	"strconv"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// Generator makes random objects that are valid in a schema.
type Generator struct {
	random *rand.Rand
	left   int // values of the current object
}

// NewGenerator returns a generator; equal seeds make equal objects.
func NewGenerator(seed uint64) *Generator {
	return &Generator{random: rand.New(rand.NewPCG(seed, 1))}
}

// maxValues bounds the values of a generated object, maxTries the attempts to find a valid value, and maxObjectTries
// the attempts to find a valid object.
const (
	maxValues      = 2000
	maxTries       = 12
	maxObjectTries = 4
)

// Object returns a random object of a schema, nil if it finds none: where a required text must match a pattern, for
// instance. It has no kind.
func (g *Generator) Object(s *schema.Schema) object.Object {
	for range maxObjectTries {
		g.left = maxValues
		obj := object.Object{}
		if !g.fields(s, s.Root(), obj, true) {
			continue
		}
		obj["metadata"] = object.Object{"name": "generated"}
		if s.Accepts(s.Root(), obj) {
			return obj
		}
	}
	return nil
}

// fields sets random fields of obj. It reports whether all required ones have a value.
func (g *Generator) fields(s *schema.Schema, n *schema.Node, obj object.Object, root bool) bool {
	for _, name := range names(n, nil) {
		if root && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		required := false
		for _, r := range n.Required {
			required = required || r == name
		}
		if !required && (g.left <= 0 || g.random.IntN(4) == 0) {
			continue
		}
		v, ok := g.value(s, n.Properties[name])
		switch {
		case ok:
			obj[name] = v
		case required:
			return false
		}
	}
	return true
}

// value returns a random value at n that is valid, and whether there is one.
func (g *Generator) value(s *schema.Schema, n *schema.Node) (any, bool) {
	for range maxTries {
		if g.left--; g.left < -maxValues {
			return nil, false // required values nest without end, or none is valid
		}
		if v, ok := g.guess(s, n); ok && s.Accepts(n, v) {
			return v, true
		}
	}
	if n.HasDefault && s.Accepts(n, n.Default) {
		return codec.Clone(n.Default), true
	}
	return nil, false
}

func (g *Generator) guess(s *schema.Schema, n *schema.Node) (any, bool) {
	switch {
	case n.Nullable && g.random.IntN(6) == 0:
		return nil, true
	case len(n.Enum) > 0:
		return codec.Clone(n.Enum[g.random.IntN(len(n.Enum))]), true
	case n.IntOrString && g.random.IntN(2) == 0:
		return g.integer(n), true
	}
	switch n.Type {
	case "object":
		return g.object(s, n)
	case "array":
		return g.list(s, n)
	case "integer":
		return g.integer(n), true
	case "number":
		return whole(float64(g.integer(n).(int64)) / float64(1+g.random.IntN(8))), true
	case "boolean":
		return g.random.IntN(2) == 0, true
	}
	return g.text(), true
}

func (g *Generator) object(s *schema.Schema, n *schema.Node) (any, bool) {
	obj := object.Object{}
	if !g.fields(s, n, obj, false) {
		return nil, false
	}
	if n.AdditionalProperties != nil {
		for range g.random.IntN(4) {
			if v, ok := g.value(s, n.AdditionalProperties); ok {
				obj[g.text()] = v
			}
		}
	} else if n.PreserveUnknown || n.AllowsAdditional {
		obj["undeclared"] = g.text()
	}
	if n.Embedded {
		obj["apiVersion"], obj["kind"] = "v1", "Generated"
	}
	return obj, true
}

func (g *Generator) list(s *schema.Schema, n *schema.Node) (any, bool) {
	if n.Items == nil {
		return []any{}, true
	}
	count := g.random.IntN(4)
	if n.MinItems != nil {
		count += int(min(*n.MinItems, maxTries))
	}
	list := []any{}
	for range count {
		v, ok := g.value(s, n.Items)
		if !ok {
			return nil, false
		}
		list = append(list, v)
	}
	return list, true
}

func (g *Generator) integer(n *schema.Node) any {
	low, high := int64(-3), int64(4000)
	if n.Minimum != nil {
		low = int64(*n.Minimum)
		high = low + 4000
	}
	if n.Maximum != nil {
		high = min(high, int64(*n.Maximum))
	}
	if high <= low {
		return low
	}
	if g.random.IntN(3) > 0 {
		high = min(high, low+8)
	}
	return low + g.random.Int64N(high-low+1)
}

// texts are strings that rules read in different routes.
var texts = []string{
	"", "a", "b", "default", "007", "12", "0", "true", "false", "10Mi", "1Gi", "1500m", "2", "90s", "1h0m0s", "1m30s",
	"host:80", ":8080", "a:b:c", "a b", "example.com", "https://example.com/x", "10.0.0.1", "2026-01-02T03:04:05Z",
}

func (g *Generator) text() string {
	if g.random.IntN(3) == 0 {
		return "x" + strconv.Itoa(g.random.IntN(1000))
	}
	return texts[g.random.IntN(len(texts))]
}
