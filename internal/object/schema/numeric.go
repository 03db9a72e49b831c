package schema

import (
	"fmt"
	"math"
	"strconv"
)

// numeric holds the constraints on numbers.
//
// Kubernetes checks that the bounds themselves have the declared type and otherwise reports an error for every number.
// Such a bound is compared as a float; other bounds are compared as integers with integers, after truncation.
type numeric struct {
	typeName, format string // integer or number, if the type is unambiguous; int32, int64, float, double

	multipleOf, maximum, minimum          *float64
	exclusiveMaximum, exclusiveMinimum    bool
	multipleOfOdd, maximumOdd, minimumOdd bool // not a value of the type
}

// newNumeric returns nil if every number passes.
func newNumeric(n *Node, known string) *numeric {
	b := &numeric{
		multipleOf: n.MultipleOf, maximum: n.Maximum, minimum: n.Minimum,
		exclusiveMaximum: n.ExclusiveMaximum, exclusiveMinimum: n.ExclusiveMinimum,
	}
	switch n.types {
	case kindInteger:
		b.typeName, b.format = "integer", known
	case kindNumber:
		b.typeName, b.format = "number", known
	}
	odd := func(f *float64) bool { return f != nil && !b.inRange(*f) }
	b.multipleOfOdd, b.maximumOdd, b.minimumOdd = odd(b.multipleOf), odd(b.maximum), odd(b.minimum)
	if b.multipleOf == nil && b.maximum == nil && b.minimum == nil && b.typeName != "integer" && b.format != "float" {
		return nil
	}
	return b
}

// inRange reports whether a float is a value of the type and format.
func (b *numeric) inRange(f float64) bool {
	switch {
	case b.typeName == "integer":
		text := strconv.FormatFloat(f, 'f', -1, 64)
		size := 64
		if b.format == "int32" {
			size = 32
		}
		_, err := strconv.ParseInt(text, 10, size)
		return err == nil
	case b.format == "float":
		_, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', -1, 64), 32)
		return err == nil
	}
	return true
}

// inRangeInt is inRange for integers.
func (b *numeric) inRangeInt(i int64) bool {
	return b.typeName != "integer" || b.format != "int32" || int64(int32(i)) == i
}

func (b *numeric) validInt(i int64) bool {
	if !b.inRangeInt(i) || b.multipleOfOdd || b.maximumOdd || b.minimumOdd {
		return false
	}
	if m := b.multipleOf; m != nil {
		if factor := int64(*m); factor <= 0 || i%factor != 0 {
			return false
		}
	}
	if b.maximum != nil && above(i, int64(*b.maximum), b.exclusiveMaximum) {
		return false
	}
	return b.minimum == nil || !above(int64(*b.minimum), i, b.exclusiveMinimum)
}

func (b *numeric) validFloat(f float64) bool {
	if !b.inRange(f) || b.multipleOfOdd || b.maximumOdd || b.minimumOdd {
		return false
	}
	if m := b.multipleOf; m != nil && (*m <= 0 || !isMultiple(f, *m)) {
		return false
	}
	if b.maximum != nil && above(f, *b.maximum, b.exclusiveMaximum) {
		return false
	}
	return b.minimum == nil || !above(*b.minimum, f, b.exclusiveMinimum)
}

// above reports whether v is beyond limit.
func above[T int64 | float64](v, limit T, exclusive bool) bool {
	return v > limit || exclusive && v == limit
}

// isMultiple reports whether f is a multiple of a positive factor, within the precision of floats.
func isMultiple(f, factor float64) bool {
	if factor < 1 {
		return isInteger(1 / factor * f)
	}
	return isInteger(f / factor)
}

// isInteger reports whether f is an integer that floats represent exactly. As in Kubernetes, a float that differs from
// an integer other than 0 by less than a part in a billion passes, too.
func isInteger(f float64) bool {
	const limit = 1<<53 - 1
	if math.IsNaN(f) || f < -limit || f > limit {
		return false
	}
	near := math.Round(f)
	return f == near || near != 0 && math.Abs(f-near) < 1e-9*math.Abs(near)
}

// explainNumber reports all errors of the number v, an int64 or a float64.
func (x *explainer) explainNumber(b *numeric, v any) {
	f, isFloat := v.(float64)
	i, _ := v.(int64)
	if !isFloat {
		f = float64(i)
	}
	if isFloat && !b.inRange(f) || !isFloat && !b.inRangeInt(i) {
		x.outOfRange(b, "Checked")
	}
	if m := b.multipleOf; m != nil {
		switch {
		case b.multipleOfOdd || isFloat:
			if b.multipleOfOdd {
				x.outOfRange(b, "MultipleOf")
			}
			if *m <= 0 {
				x.notPositive(*m)
			} else if !isMultiple(f, *m) {
				x.invalid(f, "should be a multiple of %v", *m)
			}
		case int64(*m) <= 0:
			x.notPositive(int64(*m))
		case i%int64(*m) != 0:
			x.invalid(i, "should be a multiple of %v", int64(*m))
		}
	}
	if b.minimum != nil {
		text := "should be greater than or equal to %v"
		if b.exclusiveMinimum {
			text = "should be greater than %v"
		}
		if b.minimumOdd {
			x.outOfRange(b, "Minimum boundary")
		}
		if b.minimumOdd || isFloat {
			if above(*b.minimum, f, b.exclusiveMinimum) {
				x.invalid(f, text, *b.minimum)
			}
		} else if above(int64(*b.minimum), i, b.exclusiveMinimum) {
			x.invalid(i, text, int64(*b.minimum))
		}
	}
	if b.maximum != nil {
		text := "should be less than or equal to %v"
		if b.exclusiveMaximum {
			text = "should be less than %v"
		}
		if b.maximumOdd {
			x.outOfRange(b, "Maximum boundary")
		}
		if b.maximumOdd || isFloat {
			if above(f, *b.maximum, b.exclusiveMaximum) {
				x.invalid(f, text, *b.maximum)
			}
		} else if above(i, int64(*b.maximum), b.exclusiveMaximum) {
			x.invalid(i, text, int64(*b.maximum))
		}
	}
}

// outOfRange reports that a value or a bound of the schema is not of the schema's type.
func (x *explainer) outOfRange(b *numeric, noun string) {
	kind := "(default format)"
	if b.format != "" {
		kind = "with format " + b.format
	}
	x.general(fmt.Sprintf("%s value must be of type %s %s in %s", noun, b.typeName, kind, x.path))
}

func (x *explainer) notPositive(factor any) {
	x.fail(failure{
		kind: invalidValue, value: factor,
		message: fmt.Sprintf("factor MultipleOf declared for %s must be positive: %v", x.path, factor),
	})
}
