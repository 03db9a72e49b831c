// Package fieldpath resolves the paths that validation rules name for their errors. It is pure.
package fieldpath

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

var errNoField = errors.New("does not refer to a valid field")

// Resolve resolves a rule's fieldPath, such as ".spec.items" or "['a-b']['key']", from n. It returns the path in
// the format of errors and the node at its end, nil if that is unknown.
func Resolve(jsonPath string, n *schema.Node) (path *field.Path, _ *schema.Node, err error) {
	for rest := jsonPath; rest != ""; {
		var token, name string
		switch token, rest = pathToken(rest); token {
		case ".":
			if name, rest = pathToken(rest); name == "" {
				return nil, nil, errors.New("unexpected end of JSON path")
			}
		case "[":
			var quoted string
			if quoted, rest = pathToken(rest); quoted == "" {
				return nil, nil, errors.New("unexpected end of JSON path")
			}
			if len(quoted) < 2 || quoted[0] != '\'' || quoted[len(quoted)-1] != '\'' {
				return nil, nil, fmt.Errorf("expected single quoted string but got %s", quoted)
			}
			if name, err = unquote(quoted[1 : len(quoted)-1]); err != nil {
				return nil, nil, fmt.Errorf("invalid string literal: %w", err)
			}
			if token, rest = pathToken(rest); token != "]" {
				return nil, nil, fmt.Errorf("expected ] but got %s", token)
			}
		default:
			return nil, nil, fmt.Errorf("expected [ or . but got: %s", token)
		}
		switch {
		case len(n.Properties) > 0:
			path, n = path.Child(name), n.Properties[name]
		case n.AdditionalProperties != nil:
			path, n = path.Key(name), n.AdditionalProperties
		case n.AllowsAdditional && rest == "":
			return path.Key(name), nil, nil
		default:
			n = nil
		}
		if n == nil {
			return nil, nil, errNoField
		}
	}
	return path, n, nil
}

// pathToken cuts the first token off s: a delimiter, a quoted string, or the text before the next delimiter. It is ""
// at the end.
func pathToken(s string) (token, rest string) {
	if s == "" {
		return "", ""
	}
	end := strings.IndexAny(s, ".[]")
	switch {
	case s[0] == '\'':
		for i := 1; i < len(s); i++ {
			if s[i] == '\'' && s[i-1] != '\\' {
				return s[:i+1], s[i+1:]
			}
		}
		return s, ""
	case end == 0:
		return s[:1], s[1:]
	case end < 0:
		return s, ""
	}
	return s[:end], s[end:]
}

// unquote resolves the escapes of a single-quoted string.
func unquote(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	const codes, meanings = `abfnrtv'\`, "\a\b\f\n\r\t\v'\\"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) || s[i+1] == '\n' {
			b.WriteByte(s[i])
			continue
		}
		i++
		at := strings.IndexByte(codes, s[i])
		if at < 0 {
			return "", fmt.Errorf(`invalid escape char \%c`, s[i])
		}
		b.WriteByte(meanings[at])
	}
	return b.String(), nil
}
