package reshape

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// Keep converts a stored object of a version to all others and back, like Trip. obj is decoded JSON; Keep changes it.
//
// The error has places, and no values: the author of the rules may lack the right to read the object. An object that is
// invalid in its own version may be invalid in others. A stash that no conversion would write has no effect, as in
// Convert.
func (p *Plan) Keep(obj object.Object, version string) error {
	own := p.schemas[version]
	if own == nil {
		return fmt.Errorf("the definition has no version %s with a schema", version)
	}
	delete(object.Meta(obj), "managedFields")
	own.NormalizeStored(obj)
	for _, to := range p.versions {
		if to == version {
			continue
		}
		if err := p.keep(obj, version, to); err != nil {
			return fmt.Errorf("in version %s %w", to, err)
		}
	}
	return nil
}

// keep is Keep for one other version.
func (p *Plan) keep(obj object.Object, from, to string) error {
	returned, err := p.roundTrip(obj, from, to)
	if err != nil || codec.Equal(any(returned), any(obj)) {
		return err
	}
	if !p.gives(from, to) {
		if at := difference(withoutStash(obj), withoutStash(returned)); at != "" {
			return fmt.Errorf("it loses the value of %s, and does not return as it was", at)
		}
	}
	again, err := p.roundTrip(returned, from, to)
	if err == nil && !codec.Equal(any(again), any(returned)) {
		err = fmt.Errorf("it changes with each conversion, at %s", difference(returned, again))
	}
	return err
}

// roundTrip converts a copy of obj to another version and back.
func (p *Plan) roundTrip(obj object.Object, from, to string) (object.Object, error) {
	out := codec.CloneObject(obj)
	if err := p.Convert(out, from, to); err != nil {
		return nil, fmt.Errorf("it has no form: %s", reasonOf(err))
	}
	s, own := p.schemas[to], p.schemas[from]
	if err := s.NormalizeConverted(out); err != nil {
		return nil, errors.New("an embedded object in it has invalid metadata")
	}
	if !valid(s, out) && valid(own, obj) {
		return nil, errors.New("it is invalid" + invalidAt(s, out))
	}
	if err := p.Convert(out, to, from); err != nil {
		return nil, fmt.Errorf("it has no way back: %s", reasonOf(err))
	}
	if err := own.NormalizeConverted(out); err != nil {
		return nil, errors.New("an embedded object in it has invalid metadata when it returns")
	}
	return out, nil
}

// valid reports whether an object passes the schema and its CEL rules, if they are compiled.
func valid(s *schema.Schema, obj object.Object) bool {
	return s.Accepts(s.Root(), obj) && len(s.Validate(obj, nil)) == 0
}

// reasonOf returns the text of a conversion's error without values of the object.
func reasonOf(err error) string {
	var none *noValue
	if errors.As(err, &none) {
		return none.location()
	}
	return err.Error()
}

// invalidAt returns the place of the first error in an invalid object, ": spec.size: Invalid value".
func invalidAt(s *schema.Schema, obj object.Object) string {
	errs := s.Validate(obj, nil)
	if len(errs) == 0 {
		return ""
	}
	return ": " + errs[0].Field + ": " + errs[0].Type.String()
}

// withoutStash returns obj without its stash. It copies the objects that it changes.
func withoutStash(obj object.Object) object.Object {
	if _, ok := object.Map(obj, "metadata", "annotations")[Stash]; !ok {
		return obj
	}
	out := codec.CloneObject(obj)
	removeAnnotation(out, object.Map(out, "metadata", "annotations"))
	return out
}

// difference returns the path of the first difference between two values, "" if they are equal.
func difference(a, b any) string {
	if codec.Equal(a, b) {
		return ""
	}
	if x, ok := a.(object.Object); ok {
		if y, ok := b.(object.Object); ok {
			return fieldDifference(x, y)
		}
	}
	x, xs := a.([]any)
	y, ys := b.([]any)
	if xs && ys && len(x) == len(y) {
		for i := range x {
			if !codec.Equal(x[i], y[i]) {
				return "[" + strconv.Itoa(i) + "]" + below(difference(x[i], y[i]))
			}
		}
	}
	return "."
}

// fieldDifference is difference for objects that differ.
func fieldDifference(x, y object.Object) string {
	all := append(object.Keys(x), object.Keys(y)...)
	slices.Sort(all)
	for _, name := range all {
		v, has := x[name]
		w, had := y[name]
		switch {
		case has != had:
			return name
		case !codec.Equal(v, w):
			return name + below(difference(v, w))
		}
	}
	return "."
}

// below returns a path as the end of a longer one.
func below(path string) string {
	switch {
	case path == "" || path == ".":
		return ""
	case path[0] == '[':
		return path
	}
	return "." + path
}
