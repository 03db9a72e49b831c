package table

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel"
)

// column reads one cell.
type column struct {
	typ string // integer, number, string, boolean, date
	// plain holds the names of a path that consists only of names; nil for other paths.
	plain []string
	// find returns the first value of any other path in an object. It may be called concurrently.
	find func(obj map[string]any) (value any, found bool)
	// root is the only field of the object that find reads, "" if unknown.
	root string
	// branching bounds the effort of find.
	branching branching
	// computes is true for a column with an expression, and computed is the expression, nil if it does not compile.
	computes bool
	computed *cel.Column
}

// newColumn compiles a column of a version.
func newColumn(c catalog.Column, v *catalog.Version) (column, error) {
	if c.Expression != "" {
		return column{typ: c.Type, computes: true, computed: compileExpression(c.Expression, v)}, nil
	}
	text := "{" + c.JSONPath + "}"
	parsed, err := jsonpath.Parse(c.Name, text)
	if err != nil {
		return column{}, fmt.Errorf("column %q: %w", c.Name, err)
	}
	col := column{typ: c.Type}
	col.plain, col.root = plainPath(parsed.Root)
	if col.plain != nil {
		return col, nil
	}
	col.branching = branchingOf(parsed.Root)
	compile := func() *jsonpath.JSONPath {
		j := jsonpath.New(c.Name).AllowMissingKeys(true)
		if err := j.Parse(text); err != nil {
			panic(fmt.Sprintf("%q parsed before: %v", text, err))
		}
		return j
	}
	if strings.Contains(text, "range") || strings.Contains(text, "end") {
		// Evaluation of a range changes the compiled path, so it can be neither shared nor used again.
		col.find = func(obj map[string]any) (any, bool) { return first(compile(), obj) }
	} else {
		shared := compile()
		col.find = func(obj map[string]any) (any, bool) { return first(shared, obj) }
	}
	return col, nil
}

// compileExpression returns the expression of a column, nil if it does not compile: the definition was not validated by
// this server.
func compileExpression(source string, v *catalog.Version) *cel.Column {
	compiled, err := v.Schema()
	if err != nil || compiled == nil {
		return nil
	}
	c, err := cel.NewColumn(compiled.Root(), source)
	if err != nil {
		return nil
	}
	return c
}

// plainPath returns the names of a path like ".a.b", nil if the path has another form, and its first name, if any.
// Names with several spellings in JSON do not count.
func plainPath(root *jsonpath.ListNode) (names []string, first string) {
	if len(root.Nodes) != 1 {
		return nil, ""
	}
	list, ok := root.Nodes[0].(*jsonpath.ListNode)
	if !ok {
		return nil, ""
	}
	for _, n := range list.Nodes {
		f, ok := n.(*jsonpath.FieldNode)
		if !ok || f.Value == "" || strings.ContainsFunc(f.Value, notPlain) {
			return nil, first
		}
		names = append(names, f.Value)
		first = names[0]
	}
	return names, first
}

func notPlain(r rune) bool {
	return r < ' ' || r > '~' || strings.ContainsRune(`"\<>&`, r)
}

// first returns the first value at the path. A path that does not fit the object has none.
func first(j *jsonpath.JSONPath, obj map[string]any) (any, bool) {
	results, err := j.FindResults(obj)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil, false
	}
	if v := results[0][0]; v.IsValid() {
		return v.Interface(), true
	}
	return nil, true
}

// append appends the cell. obj may be nil if the path has a root.
func (c *column) append(dst []byte, doc *document, obj map[string]any, now time.Time) []byte {
	var value any
	if c.computes {
		if c.computed == nil {
			return append(dst, "null"...)
		}
		var found bool
		if value, found = c.computed.Value(doc.computing(obj)); !found {
			return append(dst, "null"...)
		}
	} else if c.plain == nil {
		if obj == nil {
			obj = doc.only(c.root)
		}
		if !doc.left.spend(c.branching, obj) {
			return append(dst, "null"...)
		}
		var found bool
		if value, found = c.find(obj); !found {
			return append(dst, "null"...)
		}
	} else {
		raw, err := doc.at(c.plain)
		if err != nil || raw == nil {
			return append(dst, "null"...)
		}
		if c.typ == "string" && raw[0] == '"' {
			return append(dst, raw...)
		}
		if value, err = codec.DecodeJSON(raw); err != nil {
			return append(dst, "null"...)
		}
	}
	return codec.AppendJSON(dst, c.cell(value, now))
}

// cell returns the printed form of a value; nil if it does not have the column's type. Only string columns accept any
// value.
func (c *column) cell(value any, now time.Time) any {
	switch c.typ {
	case "string":
		return asText(value)
	case "integer":
		switch v := value.(type) {
		case int64:
			return v
		case float64:
			return int64(v)
		}
	case "number":
		switch v := value.(type) {
		case int64:
			return float64(v)
		case float64:
			return v
		}
	case "boolean":
		if v, ok := value.(bool); ok {
			return v
		}
	case "date":
		if v, ok := value.(string); ok {
			return asAge(v, now)
		}
	}
	return nil
}

// asText prints a value as kubectl's JSON path templates do.
func asText(value any) any {
	switch v := value.(type) {
	case nil:
		return "<no value>"
	case string:
		return v
	case map[string]any, []any:
		return string(codec.AppendJSON(nil, v))
	}
	return fmt.Sprint(value)
}

// asAge returns the time since a timestamp: "5m", "3d4h".
func asAge(timestamp string, now time.Time) any {
	var t metav1.Time
	if err := t.UnmarshalQueryParameter(timestamp); err != nil {
		return "<invalid>"
	}
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}
