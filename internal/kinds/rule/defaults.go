package rule

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/object"
)

// defaults are the defaults of a group, by type name.
type defaults map[string][]*fill

// fill is a line of a block: a value for a field, or the defaults of another type for an existing value.
type fill struct {
	path  []fillStep // to the object that has the field, and the field itself
	value any        // nil if of is set
	zero  bool       // the value also replaces 0 and ""
	of    string
}

// fillStep is a part of a path.
type fillStep struct {
	name string
	each bool // of a list, or of a map's values
}

// parseDefaults parses the defaults of the text, completed by the types of imports.
func (t *Text) parseDefaults(imports []*Text) (defaults, error) {
	out := defaults{}
	for _, from := range imports {
		d, err := from.defaults()
		if err != nil {
			return nil, err
		}
		maps.Copy(out, d)
	}
	for head, lines := range t.sections {
		if head.keyword != "defaults" {
			continue
		}
		if out[head.of] != nil {
			return nil, fmt.Errorf("defaults of %s are there already", head.of)
		}
		fills := make([]*fill, 0, len(lines))
		for _, l := range lines {
			f, err := parseFill(strings.TrimSpace(l))
			if err != nil {
				return nil, fmt.Errorf("defaults of %s: %w", head.of, err)
			}
			fills = append(fills, f)
		}
		out[head.of] = fills
	}
	for name, fills := range out {
		for _, f := range fills {
			if f.of != "" && out[f.of] == nil {
				return nil, fmt.Errorf("defaults of %s: no type %s", name, f.of)
			}
		}
	}
	return out, nil
}

func parseFill(line string) (*fill, error) {
	words := strings.SplitN(line, " ", 3)
	if len(words) != 3 {
		return nil, fmt.Errorf("%q has no value", line)
	}
	f := &fill{}
	for _, name := range strings.Split(words[0], ".") {
		s := fillStep{name: name}
		for _, end := range []string{"[]", "{}"} {
			if cut, ok := strings.CutSuffix(name, end); ok {
				s = fillStep{cut, true}
			}
		}
		f.path = append(f.path, s)
	}
	switch words[1] {
	case ":":
		f.of = words[2]
		return f, nil
	case "0=":
		f.zero = true
	case "=":
	default:
		return nil, fmt.Errorf("%q: no operator %s", line, words[1])
	}
	if err := json.Unmarshal([]byte(words[2]), &f.value); err != nil {
		return nil, fmt.Errorf("%q: %w", line, err)
	}
	if number, ok := f.value.(float64); ok {
		f.value = int64(number)
	}
	return f, nil
}

// apply sets the defaults of obj, an object of the named type.
func (d defaults) apply(name string, obj object.Object) {
	for _, f := range d[name] {
		d.fill(f, f.path, obj)
	}
}

func (d defaults) fill(f *fill, path []fillStep, obj object.Object) {
	s := path[0]
	v := obj[s.name]
	if len(path) == 1 && f.of == "" {
		if v == nil || f.zero && (v == int64(0) || v == "") {
			obj[s.name] = runtime.DeepCopyJSONValue(f.value)
		}
		return
	}
	next := func(v any) {
		below, ok := v.(map[string]any)
		switch {
		case !ok:
		case len(path) > 1:
			d.fill(f, path[1:], below)
		default:
			d.apply(f.of, below)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		if !s.each {
			next(v)
			return
		}
		for _, e := range v {
			next(e)
		}
	case []any:
		if !s.each {
			return
		}
		for _, e := range v {
			next(e)
		}
	}
}
