package schema

import (
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var errNoField = errors.New("does not refer to a valid field")

// FieldPath follows a path such as ".spec.bucket" or ".spec['my.key']" through a schema and returns it as a field path
// with the schema at its end. brackets permits the second notation. The schema is nil if the path ends in a map with
// values without a schema.
//
// The grammar is that of x-kubernetes-validations' fieldPath and of selectableFields: dots and brackets are delimiters,
// everything between them is a name.
func FieldPath(props *apiextensionsv1.JSONSchemaProps, path string, brackets bool) (*field.Path,
	*apiextensionsv1.JSONSchemaProps, error) {
	var found *field.Path
	at := props
	tokens := pathTokens(path)
	next := func() (string, error) {
		if len(tokens) == 0 {
			return "", errors.New("unexpected end of JSON path")
		}
		t := tokens[0]
		tokens = tokens[1:]
		return t, nil
	}
	for len(tokens) > 0 {
		delimiter, _ := next()
		switch {
		case delimiter == "[" && !brackets:
			return nil, nil, errors.New("array notation is not allowed")
		case delimiter != "[" && delimiter != ".":
			return nil, nil, fmt.Errorf("expected [ or . but got: %s", delimiter)
		}
		name, err := next()
		if err != nil {
			return nil, nil, err
		}
		if delimiter == "[" {
			if len(name) < 2 || name[0] != '\'' || name[len(name)-1] != '\'' {
				return nil, nil, fmt.Errorf("expected single quoted string but got %s", name)
			}
			if name, err = unescape(name[1 : len(name)-1]); err != nil {
				return nil, nil, fmt.Errorf("invalid string literal: %w", err)
			}
		}
		if found, at, err = stepInto(at, found, name); err != nil {
			return nil, nil, err
		}
		if delimiter != "[" {
			continue
		}
		end, err := next()
		if err != nil {
			return nil, nil, err
		}
		if end != "]" {
			return nil, nil, fmt.Errorf("expected ] but got %s", end)
		}
	}
	return found, at, nil
}

// stepInto returns the path and the schema of the named child: a property, or a key of a map. at may be nil.
func stepInto(at *apiextensionsv1.JSONSchemaProps, path *field.Path, name string) (*field.Path,
	*apiextensionsv1.JSONSchemaProps, error) {
	switch {
	case at == nil: // kube-apiserver panics without a schema here
		return nil, nil, errNoField
	case len(at.Properties) > 0:
		child, ok := at.Properties[name]
		if !ok {
			return nil, nil, errNoField
		}
		return path.Child(name), &child, nil
	case at.AdditionalProperties != nil:
		return path.Key(name), at.AdditionalProperties.Schema, nil
	}
	return nil, nil, errNoField
}

// pathTokens splits a path into delimiters, quoted strings and the names between them. A quote has a meaning only at
// the start of a token; an unterminated quoted string is one token.
func pathTokens(path string) (tokens []string) {
	for path != "" {
		n := 0
		switch {
		case path[0] == '\'':
			n = closingQuote(path)
		case strings.IndexByte(".[]", path[0]) >= 0:
			n = 1
		default:
			if n = strings.IndexAny(path, ".[]"); n < 0 {
				n = len(path)
			}
		}
		tokens = append(tokens, path[:n])
		path = path[n:]
	}
	return tokens
}

// closingQuote returns the length of the quoted string at the start of s, or the length of s if the quote is not
// closed.
func closingQuote(s string) int {
	for i := 1; i < len(s); i++ {
		if s[i] == '\'' && s[i-1] != '\\' {
			return i + 1
		}
	}
	return len(s)
}

// unescape resolves the escapes of a single quoted string.
func unescape(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) || s[i+1] == '\n' {
			b.WriteByte(s[i])
			continue
		}
		i++
		at := strings.IndexByte(`abfnrtv'\`, s[i])
		if at < 0 {
			return "", fmt.Errorf("invalid escape char \\%c", s[i])
		}
		b.WriteByte("\a\b\f\n\r\t\v'\\"[at])
	}
	return b.String(), nil
}
