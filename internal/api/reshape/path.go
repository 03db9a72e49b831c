package reshape

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// Path is the names of the fields that lead to a value.
type Path []string

// maxNames bounds the names in a path.
const maxNames = 64

// ParsePath parses a path: names with dots between them, names with other characters as ['example.com/team'].
func ParsePath(text string) (out Path, err error) {
	malformed := fmt.Errorf("%q is not a path such as spec.replicas or metadata.annotations['example.com/team']", text)
	for rest := text; ; {
		if quoted, ok := strings.CutPrefix(rest, "['"); ok {
			name, after, found := strings.Cut(quoted, "']")
			if !found || name == "" || len(out) == 0 {
				return nil, malformed
			}
			out, rest = append(out, name), after
		} else {
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 || strings.ContainsAny(rest[:end], "']*\" ") {
				return nil, malformed
			}
			out, rest = append(out, rest[:end]), rest[end:]
		}
		if len(out) > maxNames {
			return nil, fmt.Errorf("a path has at most %d names", maxNames)
		}
		if rest == "" {
			return out, nil
		}
		if dotted, ok := strings.CutPrefix(rest, "."); ok && !strings.HasPrefix(dotted, "[") {
			rest = dotted
		} else if !strings.HasPrefix(rest, "[") {
			return nil, malformed
		}
	}
}

// String returns the path as ParsePath reads it.
func (p Path) String() string {
	var b strings.Builder
	for i, name := range p {
		switch {
		case strings.ContainsAny(name, ".[]'"):
			b.WriteString("['" + name + "']")
		case i > 0:
			b.WriteString("." + name)
		default:
			b.WriteString(name)
		}
	}
	return b.String()
}

// below reports whether p leads to a value within the value of q.
func (p Path) below(q Path) bool { return len(p) > len(q) && slices.Equal(p[:len(q)], q) }

// meta reports whether p is a label or an annotation, or above them.
func (p Path) meta() bool { return p[0] == "metadata" }

// errMetadata is the reason against other fields of metadata in rules.
var errMetadata = errors.New("of metadata, rules reach metadata.labels['…'] and metadata.annotations['…'] only")

// text is the schema of labels and annotations.
var text = textSchema()

func textSchema() *schema.Node {
	s, err := schema.Compile(&apiextensionsv1.JSONSchemaProps{Type: "string"}, schema.Options{})
	if err != nil {
		panic("reshape: the schema of a string: " + err.Error())
	}
	return s.Root()
}

// lookup returns the schema at a path, nil if the schema has no such field. root is true for the schema of an object.
func lookup(n *schema.Node, p Path, root bool) (*schema.Node, error) {
	if root {
		switch {
		case p.meta():
			if len(p) != 3 || p[1] != "labels" && p[1] != "annotations" || p[2] == Stash || p[2] == Annotation {
				return nil, errMetadata
			}
			return text, nil
		case p[0] == "apiVersion" || p[0] == "kind":
			return nil, errors.New("rules cannot change apiVersion and kind")
		}
	}
	for i, name := range p {
		if n.AdditionalProperties != nil || n.AllowsAdditional {
			return nil, fmt.Errorf("%s is a map: use forEach for its values", p[:i])
		}
		child := n.Properties[name]
		if child == nil && n.Type == "array" {
			return nil, fmt.Errorf("%s is a list: use forEach for its items", p[:i])
		}
		if child == nil {
			return nil, nil
		}
		n = child
	}
	return n, nil
}

// missing stands for the value of a field that an object lacks.
type missing struct{}

// get returns the value at p, missing if there is none.
func (p Path) get(obj object.Object) any {
	last := len(p) - 1
	for _, name := range p[:last] {
		obj, _ = obj[name].(object.Object)
	}
	if v, ok := obj[p[last]]; ok {
		return v
	}
	return missing{}
}

// take removes the value at p and returns it, missing if there is none.
func (p Path) take(obj object.Object) any {
	last := len(p) - 1
	for _, name := range p[:last] {
		obj, _ = obj[name].(object.Object)
	}
	if v, ok := obj[p[last]]; ok {
		delete(obj, p[last])
		return v
	}
	return missing{}
}

// set sets the value at p and creates the objects that lead to it. It does nothing for a missing value.
func (p Path) set(obj object.Object, v any) {
	if v == (any)(missing{}) {
		return
	}
	last := len(p) - 1
	for _, name := range p[:last] {
		obj = object.Child(obj, name)
	}
	obj[p[last]] = v
}
