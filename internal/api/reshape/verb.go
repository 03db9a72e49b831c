package reshape

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// side is one of the two versions of a step.
type side int

const (
	first side = iota
	second
)

// direction is the side from which a step converts.
type direction = side

const (
	forward  = first
	backward = second
)

// operation converts the values of a rule. in and out have an element for each place of a side; missing{} stands for a
// field that an object lacks. in is not changed. An error means that the other side has no such values.
type operation struct {
	forward, backward func(in, out []any) error
	// exact is true if each direction always restores the values that the other one was given.
	exact bool
	// lossy is true if values without a place on the other side are given up, with the consent of the configuration.
	lossy bool
	// adds is true if the results do not consist of values of the object: their size is bounded, and they are copied.
	adds bool
}

// convert returns the function for a direction.
func (o *operation) convert(d direction) func(in, out []any) error {
	if d == forward {
		return o.forward
	}
	return o.backward
}

// labelled returns an operation without results that are no values of a label; the i-th place of a side is a label.
func (o *operation) labelled(of side, i int) *operation {
	out := *o
	out.exact = false
	checked := func(convert func(in, out []any) error) func(in, out []any) error {
		return func(in, out []any) error {
			if err := convert(in, out); err != nil {
				return err
			}
			if text, ok := out[i].(string); ok && len(validation.IsValidLabelValue(text)) > 0 {
				return errors.New("is not a valid label")
			}
			return nil
		}
	}
	if of == second {
		out.forward = checked(o.forward)
	} else {
		out.backward = checked(o.backward)
	}
	return &out
}

// verb is one word of the vocabulary.
type verb struct {
	params []string
	// from and to bound the number of places: exactly one, or any number.
	many  [2]bool
	wants string // text of the error for another number of places
	// make returns the operation for schemas a and b at the rule's places.
	make func(r *Rule, a, b []*schema.Node) (*operation, error)
}

func (v *verb) fits(from, to int) bool {
	return (from == 1 || v.many[0]) && (to == 1 || v.many[1])
}

const (
	oneToOne  = "needs one field and one field in to"
	oneToMany = "needs one field and a list of fields in to"
	manyToOne = "needs a list of fields and one field in to"
)

// verbs is the vocabulary. The places of a rule with make nil are handled by the compiler.
var verbs = vocabulary()

func vocabulary() map[string]*verb {
	single := func(f func(r *Rule, a, b *schema.Node) (*operation, error), params ...string) *verb {
		return &verb{params: params, wants: oneToOne, make: func(r *Rule, a, b []*schema.Node) (*operation, error) {
			return f(r, a[0], b[0])
		}}
	}
	return map[string]*verb{
		"move":    {params: []string{"rules"}, wants: oneToOne},
		"forEach": {params: []string{"rules"}, wants: oneToOne},
		"split":   {params: []string{"separator"}, many: [2]bool{false, true}, wants: oneToMany, make: split},
		"join": {params: []string{"separator"}, many: [2]bool{true, false}, wants: manyToOne,
			make: func(r *Rule, a, b []*schema.Node) (*operation, error) { return reversed(split(r, b, a)) }},
		"wrap": single(wrap),
		"unwrap": single(func(r *Rule, a, b *schema.Node) (*operation, error) {
			return reversed(wrap(r, b, a))
		}),
		"mapToList": single(mapToList, "key", "valueField"),
		"listToMap": single(func(r *Rule, a, b *schema.Node) (*operation, error) {
			return reversed(mapToList(r, b, a))
		}, "key", "valueField"),
		"enum":     single(enum, "values"),
		"default":  {params: []string{"value"}, wants: oneToOne},
		"constant": {params: []string{"value"}, wants: oneToOne},
		"delete":   {params: []string{"loss"}, wants: oneToOne},
		"type":     single(retype),
		"scale":    single(scale, "by"),
		"quantity": single(measured(quantityUnits), "unit"),
		"duration": single(measured(durationUnits), "unit"),
		"cel": {params: []string{"forward", "backward"}, many: [2]bool{true, true},
			wants: "needs fields, and fields in to", make: expression},
	}
}

func verbNames() []string { return slices.Sorted(maps.Keys(verbs)) }

// reversed returns the operation in which forward and backward have changed places.
func reversed(o *operation, err error) (*operation, error) {
	if err != nil {
		return nil, err
	}
	o.forward, o.backward = o.backward, o.forward
	return o, nil
}

// same copies the values.
var same = &operation{forward: pass, backward: pass, exact: true}

func pass(in, out []any) error {
	copy(out, in)
	return nil
}

// nothing is the operation of a field without a place on the other side.
var nothing = &operation{forward: none, backward: none}

func none(_, out []any) error {
	clearValues(out)
	return nil
}

func clearValues(out []any) {
	for i := range out {
		out[i] = missing{}
	}
}

func isMissing(v any) bool {
	_, yes := v.(missing)
	return yes
}

// filled is the operation of a field that gets a value if the other version has none: of default and constant. shared
// is true if the other version has the field, too.
func filled(value any, shared bool) *operation {
	o := &operation{adds: true, backward: none, forward: func(in, out []any) error {
		if len(in) > 0 && !isMissing(in[0]) {
			out[0] = in[0]
			return nil
		}
		out[0] = value
		return nil
	}}
	if shared {
		o.backward = pass
	}
	return o
}

var errText = errors.New("is not a text")
