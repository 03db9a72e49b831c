package kinds

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// defaultsText holds the static defaults; its head explains it.
//
//go:embed defaults.txt
var defaultsText string

// defaults are the blocks of defaultsText by the name of the type.
type defaults map[string][]*fill

// fill is a line of a block: a value for a field, or the defaults of another type for what is there.
type fill struct {
	path  []step // to the object that has the field, and the field itself
	value any    // nil if of is set
	zero  bool   // the value also takes the place of 0 and ""
	of    string
}

// step is a part of a path.
type step struct {
	name string
	each bool // of a list, or of a map's values
}

// loadDefaults parses the embedded text, which is part of the program and so cannot be wrong.
func loadDefaults() defaults {
	d, err := parseDefaults(defaultsText)
	if err != nil {
		panic(fmt.Errorf("defaults.txt: %w", err))
	}
	return d
}

func parseDefaults(text string) (defaults, error) {
	out := defaults{}
	block := ""
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] != '\t':
			block = line
			out[block] = []*fill{}
		default:
			f, err := parseFill(strings.TrimSpace(line))
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			out[block] = append(out[block], f)
		}
	}
	for _, fills := range out {
		for _, f := range fills {
			if f.of != "" && out[f.of] == nil {
				return nil, fmt.Errorf("no type %s", f.of)
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
		s := step{name: name}
		for _, end := range []string{"[]", "{}"} {
			if cut, ok := strings.CutSuffix(name, end); ok {
				s = step{cut, true}
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

// apply fills in what obj, an object of the named type, lacks.
func (d defaults) apply(name string, obj catalog.Object) {
	for _, f := range d[name] {
		d.fill(f, f.path, obj)
	}
}

func (d defaults) fill(f *fill, path []step, obj catalog.Object) {
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
