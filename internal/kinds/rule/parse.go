package rule

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// blocks are the rules of each type.
type blocks map[string][]*line

// line is one rule: an operator on the value at a path.
type line struct {
	path []step // empty for the object itself
	op   string
	mark byte     // '!' or '?' behind the operator, or 0
	args []string // the words after the operator, up to the message
	text string   // the message, "" for the default one

	low, high int64                 // of min, range and length
	format    func(string) []string // of format
	call      Function
}

// step is a part of a path.
type step struct {
	name       string
	list, dict bool // all elements of a list, all values of a map
}

// parseRules parses the rules of the text. Lines may refer to types of imports.
func (t *Text) parseRules(imports []*Text, functions Functions) (blocks, error) {
	formats, out := formats(), blocks{}
	for _, from := range imports {
		b, err := from.rules()
		if err != nil {
			return nil, err
		}
		maps.Copy(out, b)
	}
	for head, lines := range t.sections {
		if head.keyword != "rules" {
			continue
		}
		if out[head.of] != nil {
			return nil, fmt.Errorf("rules of %s are there already", head.of)
		}
		block := make([]*line, 0, len(lines))
		for _, l := range lines {
			c, err := parseLine(strings.TrimSpace(l))
			if err == nil {
				err = c.bind(formats, functions)
			}
			if err != nil {
				return nil, fmt.Errorf("rules of %s: %w", head.of, err)
			}
			block = append(block, c)
		}
		out[head.of] = block
	}
	for name, lines := range out {
		for _, c := range lines {
			if (c.op == ":" || c.op == "|") && out[c.args[0]] == nil {
				return nil, fmt.Errorf("rules of %s: no type %s", name, c.args[0])
			}
		}
	}
	return out, nil
}

func parseLine(s string) (*line, error) {
	check, message, _ := strings.Cut(s, " -- ")
	words := strings.Fields(check)
	if len(words) < 2 {
		return nil, fmt.Errorf("%q has no operator", s)
	}
	c := &line{op: words[1], args: words[2:], text: message}
	if words[0] != "." {
		for _, name := range strings.Split(words[0], ".") {
			st := step{name: name}
			st.name, st.list = strings.CutSuffix(st.name, "[]")
			st.name, st.dict = strings.CutSuffix(st.name, "{}")
			c.path = append(c.path, st)
		}
	}
	if op, last := c.op[:len(c.op)-1], c.op[len(c.op)-1]; op != "" && (last == '!' || last == '?') {
		c.op, c.mark = op, last
	}
	return c, nil
}

// bind resolves the arguments of the operator.
func (c *line) bind(formats map[string]func(string) []string, functions Functions) error {
	want := map[string]int{
		"required": 0, "set": 0, "port": 0, "same": 0, "sealed": 0, "unset": 0, "nonnegative": 0, "min": 1, "range": 2,
		"length": 1, "format": 1, "!": 1, ":": 1,
	}
	if n, ok := want[c.op]; ok && len(c.args) != n {
		return fmt.Errorf("%s takes %d words, not %d", c.op, n, len(c.args))
	}
	var ok bool
	switch c.op {
	case "required", "set", "port", "same", "sealed", "unset", "nonnegative", ":", "|", "union":
		return nil
	case "one":
		for i, a := range c.args {
			if a == `""` {
				c.args[i] = ""
			}
		}
		return nil
	case "min", "length", "range":
		var err error
		if c.low, err = strconv.ParseInt(c.args[0], 10, 64); err == nil && c.op == "range" {
			c.high, err = strconv.ParseInt(c.args[1], 10, 64)
		}
		return err
	case "format":
		c.format, ok = formats[c.args[0]]
	case "!":
		c.call, ok = functions[c.args[0]]
	default:
		return fmt.Errorf("no operator %s", c.op)
	}
	if !ok {
		return fmt.Errorf("no %s %s", c.op, c.args[0])
	}
	return nil
}
