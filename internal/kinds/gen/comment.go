package main

import "strings"

// comment is a doc comment's text: prose, and markers on lines that start with a plus sign.
type comment struct{ text string }

// marker returns the value of "+name=value", the last one if there are several, or "".
func (c comment) marker(name string) string {
	if all := c.markers(name); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// markers returns the values of all "+name=value", in order.
func (c comment) markers(name string) []string {
	var out []string
	for line := range strings.Lines(c.text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "+"+name+"="); ok {
			out = append(out, v)
		}
	}
	return out
}

// has reports whether there is a marker "+name".
func (c comment) has(name string) bool {
	for line := range strings.Lines(c.text) {
		if strings.TrimSpace(line) == "+"+name {
			return true
		}
	}
	return false
}

// description returns the prose as Kubernetes' OpenAPI documents have it: the lines of a paragraph joined, indented
// lines kept on their own, markers, lines of TODO and everything below a line "---" left out.
func (c comment) description() string {
	var b []byte
	// Each piece ends in the one character that separates it from later words; a paragraph or an indented line removes
	// it again.
	cut := func() { b = b[:max(0, len(b)-1)] }
	for line := range strings.Lines(c.text) {
		line = strings.TrimRight(line, " \n")
		leading := strings.TrimLeft(line, " ")
		if line == "---" {
			break
		}
		switch {
		case line == "":
			cut()
			b = append(b, "\n\n"...)
		case strings.HasPrefix(leading, "TODO"), strings.HasPrefix(leading, "+"):
		case strings.HasPrefix(line, " "), strings.HasPrefix(line, "\t"):
			cut()
			b = append(b, "\n"+line+"\n"...)
		default:
			b = append(b, line+" "...)
		}
	}
	return strings.Trim(string(b), " \n")
}
