package reshape

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// isScalar reports whether values at n are strings, numbers or booleans.
func isScalar(n *schema.Node) bool {
	switch n.Type {
	case "string", "integer", "number", "boolean":
		return true
	}
	return n.IntOrString
}

// split divides a text at a separator. The last part has the rest.
func split(r *Rule, a, b []*schema.Node) (*operation, error) {
	separator, err := r.required("separator")
	if err != nil {
		return nil, err
	}
	if a[0].Type != "string" {
		return nil, errors.New("the divided field must be a string")
	}
	for _, part := range b {
		if !isScalar(part) {
			return nil, errors.New("the parts must be strings, numbers or booleans")
		}
	}
	return &operation{
		forward: func(in, out []any) error {
			clearValues(out)
			if isMissing(in[0]) {
				return nil
			}
			text, ok := in[0].(string)
			if !ok {
				return errText
			}
			for i, part := range strings.SplitN(text, separator, len(out)) {
				if out[i], err = scalar(part, b[i]); err != nil {
					return err
				}
			}
			return nil
		},
		backward: func(in, out []any) error {
			var parts []string
			for i, v := range in {
				if isMissing(v) {
					continue
				}
				for len(parts) < i {
					parts = append(parts, "")
				}
				text, err := textOf(v)
				if err != nil {
					return err
				}
				parts = append(parts, text)
			}
			if out[0] = missing(struct{}{}); parts != nil {
				out[0] = strings.Join(parts, separator)
			}
			return nil
		},
	}, nil
}

// wrap makes a list of one item, and nothing of a list without items.
func wrap(_ *Rule, a, b *schema.Node) (*operation, error) {
	if b.Type != "array" || b.Items == nil {
		return nil, errors.New("one of the fields must be a list of the other")
	}
	if why := differ(a, b.Items, ""); why != "" {
		return nil, fmt.Errorf("the items of the list have another shape: %s", why)
	}
	return &operation{
		forward: func(in, out []any) error {
			if out[0] = in[0]; !isMissing(in[0]) {
				out[0] = []any{in[0]}
			}
			return nil
		},
		backward: func(in, out []any) error {
			out[0] = missing{}
			if isMissing(in[0]) {
				return nil
			}
			list, ok := in[0].([]any)
			if !ok {
				return errors.New("is not a list")
			}
			if len(list) > 0 {
				out[0] = list[0]
			}
			return nil
		},
	}, nil
}

// mapToList makes a list of a map. Each item has the key in one field; valueField is the field of the value, or else
// the items are the values, with the key added.
func mapToList(r *Rule, a, b *schema.Node) (*operation, error) {
	key, err := r.required("key")
	if err != nil {
		return nil, err
	}
	valueField, err := r.text("valueField")
	if err != nil {
		return nil, err
	}
	values := a.AdditionalProperties
	if values == nil || b.Type != "array" || b.Items == nil {
		return nil, errors.New("one of the fields must be a map, the other a list")
	}
	if name := b.Items.Properties[key]; name == nil || name.Type != "string" {
		return nil, fmt.Errorf("the items of the list have no string %q for the key", key)
	}
	if err := checkItems(values, b.Items, key, valueField); err != nil {
		return nil, err
	}
	return &operation{
		forward: func(in, out []any) (err error) {
			if out[0] = in[0]; !isMissing(in[0]) {
				out[0], err = listOfMap(in[0], key, valueField)
			}
			return err
		},
		backward: func(in, out []any) (err error) {
			if out[0] = in[0]; !isMissing(in[0]) {
				out[0], err = mapOfList(in[0], key, valueField)
			}
			return err
		},
	}, nil
}

// checkItems compares the values of a map with the items of a list.
func checkItems(values, items *schema.Node, key, valueField string) error {
	if valueField != "" {
		field := items.Properties[valueField]
		if field == nil {
			return fmt.Errorf("the items of the list have no field %q for the value", valueField)
		}
		if len(items.Properties) != 2 || valueField == key {
			return fmt.Errorf("the items of the list must have the fields %q and %q only", key, valueField)
		}
		if why := differ(values, field, valueField); why != "" {
			return errors.New(why)
		}
		return nil
	}
	if values.Type != "object" || values.Properties[key] != nil {
		return fmt.Errorf("the values of the map must be objects without %q, or valueField must be given", key)
	}
	rest := *items
	rest.Properties = maps.Clone(items.Properties)
	delete(rest.Properties, key)
	if why := differ(values, &rest, ""); why != "" {
		return errors.New(why)
	}
	return nil
}

func listOfMap(v any, key, valueField string) (any, error) {
	m, ok := v.(object.Object)
	if !ok {
		return nil, errors.New("is not a map")
	}
	out := make([]any, 0, len(m))
	for _, name := range object.Keys(m) {
		if valueField != "" {
			out = append(out, object.Object{key: name, valueField: m[name]})
			continue
		}
		value, ok := m[name].(object.Object)
		if !ok {
			return nil, errors.New("has a value that is not an object")
		}
		item := maps.Clone(value)
		if item == nil {
			item = object.Object{}
		}
		item[key] = name
		out = append(out, item)
	}
	return out, nil
}

func mapOfList(v any, key, valueField string) (any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, errors.New("is not a list")
	}
	out := make(object.Object, len(list))
	for _, item := range list {
		m, _ := item.(object.Object)
		name, ok := m[key].(string)
		if !ok {
			return nil, fmt.Errorf("has an item without %q", key)
		}
		if _, twice := out[name]; twice {
			continue // the first item counts; the list is kept beside
		}
		if valueField != "" {
			if value, ok := m[valueField]; ok {
				out[name] = value
			}
			continue
		}
		value := maps.Clone(m)
		delete(value, key)
		out[name] = value
	}
	return out, nil
}

// enum replaces values. Values that it does not name stay.
func enum(r *Rule, a, b *schema.Node) (*operation, error) {
	values, ok := r.params["values"].(object.Object)
	if !ok || len(values) == 0 {
		return nil, errors.New("values must be an object that maps values to values")
	}
	if !isScalar(a) || !isScalar(b) {
		return nil, errors.New("the fields must be strings, numbers or booleans")
	}
	there, back := map[any]any{}, map[any]any{}
	for _, name := range object.Keys(values) {
		from, err := scalar(name, a)
		if err != nil {
			return nil, fmt.Errorf("value %q: %w", name, err)
		}
		to := values[name]
		if _, composite := to.(object.Object); composite || to == nil {
			return nil, fmt.Errorf("value %q must become a string, number or boolean", name)
		}
		if _, composite := to.([]any); composite {
			return nil, fmt.Errorf("value %q must become a string, number or boolean", name)
		}
		there[from] = to
		if _, taken := back[to]; !taken {
			back[to] = from
		}
	}
	if err := checkEnum(a, b, there); err != nil {
		return nil, err
	}
	if err := checkEnum(b, a, back); err != nil {
		return nil, err
	}
	replace := func(by map[any]any) func(in, out []any) error {
		return func(in, out []any) error {
			out[0] = in[0]
			switch in[0].(type) {
			case object.Object, []any:
				return errors.New("is not a string, number or boolean")
			}
			if v, ok := by[in[0]]; ok {
				out[0] = v
			}
			return nil
		}
	}
	return &operation{forward: replace(there), backward: replace(back)}, nil
}

// checkEnum checks that each value of an enum has a value of the other one.
func checkEnum(a, b *schema.Node, by map[any]any) error {
	if a.Type != b.Type && a.Enum == nil {
		return errors.New("fields of different types need an enum in their schemas")
	}
	if b.Enum == nil {
		return nil
	}
	for _, v := range a.Enum {
		to, ok := by[v]
		if !ok {
			to = v
		}
		if !slices.ContainsFunc(b.Enum, func(e any) bool { return codec.Equal(e, to) }) {
			return fmt.Errorf("the value %v has no value in the other version", v)
		}
	}
	return nil
}

// retype converts between strings, integers, numbers and booleans.
func retype(_ *Rule, a, b *schema.Node) (*operation, error) {
	if !isScalar(a) || !isScalar(b) {
		return nil, errors.New("the fields must be strings, numbers or booleans")
	}
	to := func(n *schema.Node) func(in, out []any) error {
		return func(in, out []any) (err error) {
			if out[0] = in[0]; isMissing(in[0]) || in[0] == nil {
				return nil
			}
			text, err := textOf(in[0])
			if err != nil {
				return err
			}
			if n.IntOrString {
				return nil
			}
			out[0], err = scalar(text, n)
			return err
		}
	}
	return &operation{forward: to(b), backward: to(a)}, nil
}

// scalar returns the value of a schema's type for a text.
func scalar(text string, n *schema.Node) (any, error) {
	switch n.Type {
	case "string":
		return text, nil
	case "integer":
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i, nil
		}
		return nil, fmt.Errorf("%.64q is not an integer", text)
	case "number":
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i, nil
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f, nil
		}
		return nil, fmt.Errorf("%.64q is not a number", text)
	case "boolean":
		switch text {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, fmt.Errorf("%.64q is not true or false", text)
	}
	if n.IntOrString {
		if i, err := strconv.ParseInt(text, 10, 32); err == nil && strconv.FormatInt(i, 10) == text {
			return i, nil
		}
		return text, nil
	}
	return nil, errors.New("the field is not a string, number or boolean")
}

// textOf returns a scalar as text.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	}
	return "", errors.New("is not a string, number or boolean")
}
