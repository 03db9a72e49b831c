package quantity

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Object measures the quantities of decoded JSON (map[string]any, []any, string, bool, int64, float64 or nil) before it
// is decoded as the Go type t. It replaces quantities with many decimal places by a short text of the same value, in
// place. The error is a *Refusal. The cost is linear in the parts of obj where t holds quantities.
func Object(t reflect.Type, obj any) error {
	s := shapeOf(t)
	if s == nil {
		return nil
	}
	var w walk
	_, err := w.value(s, obj)
	if err == nil {
		return nil
	}
	again := walk{tracks: true}
	if _, located := again.value(s, obj); located != nil {
		return located
	}
	return err
}

// walk measures one object.
type walk struct {
	meter  meter
	tracks bool   // keeps path; without a refusal it is not needed
	path   []step // the names, indexes and keys to the current value
}

// step is the name of a field, or the index or key of a value.
type step struct {
	name  string
	index int // -1 for a name or key
	isKey bool
}

// at makes the path to the current value.
func (w *walk) at() *field.Path {
	var path *field.Path
	for _, s := range w.path {
		switch {
		case s.isKey:
			path = path.Key(s.name)
		case s.index >= 0:
			path = path.Index(s.index)
		default:
			path = path.Child(s.name)
		}
	}
	return path
}

// value measures a value and returns its replacement: itself, or a short text.
func (w *walk) value(s *shape, v any) (any, error) {
	switch {
	case s.quantity:
		if text, ok := v.(string); ok { // a number has an exponent of three digits at most
			short, err := w.meter.take(text, w.at)
			if err != nil || len(short) == len(text) {
				return v, err
			}
			return short, nil
		}
		return v, nil
	case s.values != nil:
		return v, w.values(s, v)
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return v, nil
	}
	for i := range s.members {
		if err := w.member(&s.members[i], obj); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (w *walk) member(m *member, obj map[string]any) error {
	if m.name == "" {
		_, err := w.value(m.shape, obj)
		return err
	}
	v, ok := obj[m.name]
	if !ok {
		return nil
	}
	short, err := w.within(m.shape, step{name: m.name, index: -1}, v)
	if err == nil && m.shape.quantity {
		obj[m.name] = short
	}
	return err
}

func (w *walk) values(s *shape, v any) error {
	switch v := v.(type) {
	case map[string]any:
		if !s.isMap {
			return nil
		}
		for key, e := range v {
			short, err := w.within(s.values, step{name: key, index: -1, isKey: true}, e)
			if err != nil {
				return err
			}
			if s.values.quantity {
				v[key] = short
			}
		}
	case []any:
		if s.isMap {
			return nil
		}
		for i, e := range v {
			short, err := w.within(s.values, step{index: i}, e)
			if err != nil {
				return err
			}
			if s.values.quantity {
				v[i] = short
			}
		}
	}
	return nil
}

// within measures a value one step deeper.
func (w *walk) within(s *shape, to step, v any) (any, error) {
	if !w.tracks {
		return w.value(s, v)
	}
	w.path = append(w.path, to)
	v, err := w.value(s, v)
	w.path = w.path[:len(w.path)-1]
	return v, err
}
