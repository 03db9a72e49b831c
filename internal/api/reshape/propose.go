package reshape

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// Proposal has rules for the difference of two schemas. An author checks them: names and shapes do not show the meaning
// of a field.
type Proposal struct {
	Rules []Proposed
	// Alone lists the fields of one version only, whose values stay in the stash, and Open the differences without a
	// rule, as sentences.
	Alone, Open []string
}

// Proposed is a rule in a configuration's form, and the reason for it.
type Proposed struct {
	Rule object.Object
	Why  string
}

// Propose proposes rules between two versions, by their names and schemas, and tries them on generated objects. It
// returns ctx's error if ctx ends.
func Propose(ctx context.Context, names [2]string, schemas [2]*schema.Schema) (*Proposal, error) {
	d := &differences{names: names, schemas: schemas}
	d.compare(schemas[first].Root(), schemas[second].Root(), nil)
	d.match()
	d.fillRequired()
	out := &Proposal{Rules: d.rules, Open: d.open}
	for of, fields := range d.alone {
		for _, f := range fields {
			if !f.taken {
				out.Alone = append(out.Alone, fmt.Sprintf("%s is in %s only", f.path, names[of]))
			}
		}
	}
	if len(out.Open) > 0 {
		return out, nil
	}
	return out, d.try(ctx, out)
}

// Steps returns the configuration of a proposal, as decoded JSON.
func (p *Proposal) Steps(names [2]string) object.Object {
	rules := make([]any, len(p.Rules))
	for i := range p.Rules {
		rules[i] = p.Rules[i].Rule
	}
	return object.Object{"steps": []any{object.Object{"from": names[first], "to": names[second], "rules": rules}}}
}

// differences collects the differences of two versions.
type differences struct {
	names   [2]string
	schemas [2]*schema.Schema
	inner   bool // the objects are items of a list or values of a map
	alone   [2][]*lone
	rules   []Proposed
	open    []string
}

// lone is a field of one version only.
type lone struct {
	path  Path
	node  *schema.Node
	holds []string // the required fields of the object that holds it
	taken bool     // a rule has it
}

// required reports whether an object without the field is invalid. A conversion fills in no defaults.
func (l *lone) required() bool {
	for _, name := range l.holds {
		if name == l.path[len(l.path)-1] {
			return true
		}
	}
	return false
}

// try compiles and proves a proposal, and adds the reasons against it.
func (d *differences) try(ctx context.Context, p *Proposal) error {
	const objects = 100
	c, err := Decode(p.Steps(d.names))
	if err != nil {
		return err
	}
	plan, err := New(c, map[string]*schema.Schema{d.names[first]: d.schemas[first], d.names[second]: d.schemas[second]})
	if err == nil {
		_, err = plan.Prove(ctx, objects)
	}
	var problems Problems
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &problems):
		p.Open = append(p.Open, problems...)
	case err != nil:
		p.Open = append(p.Open, err.Error())
	}
	return nil
}

// compare collects the differences of two objects at a path.
func (d *differences) compare(a, b *schema.Node, path Path) {
	for _, name := range names(a, b) {
		if !d.inner && len(path) == 0 && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		p := append(append(Path{}, path...), name)
		x, y := a.Properties[name], b.Properties[name]
		switch {
		case y == nil:
			d.alone[first] = append(d.alone[first], &lone{path: p, node: x, holds: a.Required})
		case x == nil:
			d.alone[second] = append(d.alone[second], &lone{path: p, node: y, holds: b.Required})
		case differ(x, y, "") == "":
		case plain(x) && plain(y):
			d.compare(x, y, p)
		default:
			d.changed(p, x, p, y, "")
		}
	}
}

// changed proposes a rule between fields of different shapes, and reports whether there is one. why is the reason to
// relate the fields, "" if they have one path; then fields without a rule are an open difference.
func (d *differences) changed(from Path, x *schema.Node, to Path, y *schema.Node, why string) bool {
	add := func(verb, text string, params ...any) bool {
		rule := object.Object{verb: from.String()}
		if why != "" {
			rule["to"] = to.String()
			text = why + ", " + text
		}
		for i := 0; i+1 < len(params); i += 2 {
			rule[params[i].(string)] = params[i+1]
		}
		d.rules = append(d.rules, Proposed{rule, text})
		return true
	}
	switch {
	case leaf(x) && leaf(y):
		return add("type", fmt.Sprintf("%s becomes %s", describe(x), describe(y)))
	case y.Type == "array" && y.Items != nil && differ(x, y.Items, "") == "":
		return add("wrap", "a value becomes a list")
	case x.Type == "array" && x.Items != nil && differ(x.Items, y, "") == "":
		return add("unwrap", "a list becomes its first value")
	case x.AdditionalProperties != nil && y.Type == "array" && y.Items != nil:
		if params := keyed(x.AdditionalProperties, y.Items); params != nil {
			return add("mapToList", "a map becomes a list", params...)
		}
	case y.AdditionalProperties != nil && x.Type == "array" && x.Items != nil:
		if params := keyed(y.AdditionalProperties, x.Items); params != nil {
			return add("listToMap", "a list becomes a map", params...)
		}
	}
	if rules, each := d.below(x, y); each {
		if len(rules) == 0 {
			return why == "" // the engine compares the items
		}
		return add("forEach", "its items differ", "rules", rules)
	}
	if why == "" {
		d.open = append(d.open, fmt.Sprintf("%s is %s in %s and %s in %s", from, describe(x), d.names[first],
			describe(y), d.names[second]))
	}
	return false
}

// below returns the rules for the items of two lists, or the values of two maps; each is false for other values.
func (d *differences) below(x, y *schema.Node) (rules []any, each bool) {
	a, b := x.Items, y.Items
	if x.AdditionalProperties != nil {
		a, b = x.AdditionalProperties, y.AdditionalProperties
	}
	if a == nil || b == nil || !plain(a) || !plain(b) {
		return nil, false
	}
	inner := &differences{names: d.names, schemas: d.schemas, inner: true}
	inner.compare(a, b, nil)
	inner.match()
	inner.fillRequired()
	d.open = append(d.open, inner.open...)
	for _, r := range inner.rules {
		rules = append(rules, r.Rule)
	}
	return rules, true
}

// leaf reports whether values of a schema are texts, numbers or booleans.
func leaf(n *schema.Node) bool {
	switch n.Type {
	case "string", "integer", "number", "boolean":
		return !n.IntOrString
	}
	return false
}

// keyed returns the parameters of a rule between a map with these values and a list with these items, nil if there is
// none.
func keyed(value, item *schema.Node) []any {
	if !plain(item) {
		return nil
	}
	for _, key := range []string{"name", "key", "id"} {
		if n := item.Properties[key]; n == nil || n.Type != "string" {
			continue
		}
		if plain(value) {
			rest := *item
			rest.Properties = map[string]*schema.Node{}
			for name, n := range item.Properties {
				if name != key {
					rest.Properties[name] = n
				}
			}
			if differ(value, &rest, "") == "" {
				return []any{"key", key}
			}
			continue
		}
		if n := item.Properties["value"]; n != nil && len(item.Properties) == 2 && differ(value, n, "") == "" {
			return []any{"key", key, "valueField", "value"}
		}
	}
	return nil
}

// fillRequired proposes values for the required fields that the other version lacks.
func (d *differences) fillRequired() {
	for of, fields := range d.alone {
		for _, f := range fields {
			if f.taken || !f.required() {
				continue
			}
			value, ok := anyValue(d.schemas[of], f.node)
			if !ok {
				d.open = append(d.open, fmt.Sprintf("%s requires %s, and %s has no field for it", d.names[of], f.path,
					d.names[1-of]))
				continue
			}
			f.taken = true
			d.rules = append(d.rules, Proposed{object.Object{"constant": f.path.String(), "value": value},
				d.names[of] + " requires it: choose the value"})
		}
	}
}

// anyValue returns a simple value of a schema.
func anyValue(s *schema.Schema, n *schema.Node) (any, bool) {
	var guesses []any
	if n.HasDefault {
		guesses = append(guesses, n.Default)
	}
	guesses = append(append(guesses, n.Enum...), "", int64(0), int64(1), false, []any{}, object.Object{}, "default")
	if n.Minimum != nil {
		guesses = append(guesses, int64(*n.Minimum), int64(*n.Minimum)+1)
	}
	for _, v := range guesses {
		if s.Accepts(n, v) && len(codec.AppendJSON(nil, v)) <= maxValue {
			return v, true
		}
	}
	return nil, false
}

// words returns the words of a field's name, in lower case: "hostPort" has host and port.
func words(name string) []string {
	var out []string
	word := ""
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' && word != "" && (name[i-1] < 'A' || name[i-1] > 'Z') {
			out, word = append(out, word), ""
		}
		word += strings.ToLower(string(r))
	}
	return append(out, word)
}
