package cel

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel/maxcost"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel/plain"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel/reads"
	"github.com/bowsprit/bowsprit/internal/object/schema/format"
)

// Column is an expression of self, a custom object, that computes a cell of a table (KEP-4595). It is immutable and
// safe for concurrent use.
type Column struct {
	self typedNode
	x    evaluable
}

// columnsCost is the cost that all columns of one object may have together, some milliseconds. Kubernetes also refuses
// rules that may cost too much on the largest object of the schema. It would refuse every text made of numbers, because
// it has no estimate for their lengths. A cell may stay empty instead.
const columnsCost = 100_000

var columnRole = role{compiling: ruleRole.compiling, instantiation: ruleRole.instantiation, limit: columnsCost}

// NewColumn compiles an accepted expression for objects with the schema root.
func NewColumn(root *schema.Node, source string) (*Column, error) {
	c := &Column{self: columnSelf(root)}
	compiled, err := columnScope(c.self, source).compile(storedExpressions(), source, false, columnRole)
	if err != nil {
		return nil, err
	}
	c.x.program = compiled.program
	for i := range extents {
		c.x.maxCosts[i] = maxcost.Of(compiled.ast.NativeRep(), extents[i])
	}
	c.x.tracked = sync.OnceValues(func() (*interpreter.ObservableInterpretable, error) {
		return columnScope(c.self, source).tracked(storedExpressions(), source, false, columnRole)
	})
	return c, nil
}

// ColumnCheck configures CheckColumn.
type ColumnCheck struct {
	// Type is the type of the column: integer, number, string, boolean or date.
	Type string
	// Stored is true for an expression of the stored definition.
	Stored bool
	// Patterns is the budget for the patterns that the expressions of the definition hold.
	Patterns *format.Patterns
	// Hidden reports whether the value at a path of names must not be shown. nil hides nothing.
	Hidden func(path []string) bool
}

// CheckColumn returns the reason against an expression for a column of objects with the schema root.
func CheckColumn(root *schema.Node, source string, o ColumnCheck) error {
	if len(source) > functionText {
		return fmt.Errorf("the expression has %d bytes, at most %d are allowed", len(source), functionText)
	}
	if err := takePatterns(o.Patterns, source); err != nil {
		return err
	}
	self := columnSelf(root)
	env := newExpressions
	if o.Stored {
		env = storedExpressions
	}
	scope := columnScope(self, source)
	compiled, err := scope.compile(env(), source, false, columnRole)
	if err != nil {
		return err
	}
	switch t := compiled.ast.OutputType(); {
	case compiled.usesOldSelf:
		return errors.New("oldSelf is for validation rules: a table shows one state of an object")
	case !scope.shows(o.Type, t):
		return fmt.Errorf("the expression returns %s, and a column of type %s needs %s", scope.typeName(t), o.Type,
			columnTypes[o.Type])
	}
	if o.Hidden == nil {
		return nil
	}
	for _, path := range reads.Paths(celast.NavigateAST(compiled.ast.NativeRep())) {
		if o.Hidden(path) {
			return fmt.Errorf("the expression reads self%s, which is, has or is part of a sensitive field", dotted(path))
		}
	}
	return nil
}

func dotted(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return "." + strings.Join(path, ".")
}

func columnScope(self typedNode, source string) *scope {
	return newScope(self, apiextensionsv1.ValidationRules{{Rule: source}})
}

// columnMetadata has the fields of metadata that people look for in tables. Validation rules see only the names.
var columnMetadata = func() *schema.Node {
	text := func(format string) *schema.Node { return &schema.Node{Type: "string", Format: format} }
	texts := &schema.Node{Type: "object", AdditionalProperties: text("")}
	out := metadataUpTo(longestName, longestPrefix)
	maps.Copy(out.Properties, map[string]*schema.Node{
		"namespace": text(""), "uid": text(""), "resourceVersion": text(""), "labels": texts, "annotations": texts,
		"generation": {Type: "integer"}, "creationTimestamp": text("date-time"), "deletionTimestamp": text("date-time"),
		"finalizers": {Type: "array", Items: text("")},
	})
	return out
}()

// columnSelf returns the type of self for objects with the schema root.
func columnSelf(root *schema.Node) typedNode {
	out := *root
	out.Properties = maps.Clone(root.Properties)
	if out.Properties == nil {
		out.Properties = map[string]*schema.Node{}
	}
	out.Properties["apiVersion"], out.Properties["kind"] = stringNode, stringNode
	out.Properties["metadata"] = columnMetadata
	return typedNode{&out, true}
}

// columnTypes are the results that the columns of each type need.
var columnTypes = map[string]string{
	"string": "a text, a number, a boolean, a time, a list or a map", "integer": "an int", "number": "an int or a double",
	"boolean": "a bool", "date": "a timestamp, or a string with one",
}

// shows reports whether a column can show results of a type. A value of unknown type is checked when it is printed.
func (s *scope) shows(column string, t *cel.Type) bool {
	if t.Kind() == types.OpaqueKind && t.TypeName() == types.OptionalType.TypeName() {
		t = t.Parameters()[0]
	}
	switch t.Kind() {
	case types.DynKind, types.AnyKind, types.TypeParamKind:
		return true
	case types.IntKind, types.UintKind:
		return column == "integer" || column == "number" || column == "string"
	case types.DoubleKind:
		return column == "number" || column == "string"
	case types.BoolKind:
		return column == "boolean" || column == "string"
	case types.StringKind, types.TimestampKind:
		return column == "date" || column == "string"
	case types.BytesKind, types.DurationKind, types.NullTypeKind, types.ListKind, types.MapKind:
		return column == "string"
	}
	return column == "string" && s.isObject(t)
}

// isObject reports whether a type is an object of the schema.
func (s *scope) isObject(t *cel.Type) bool {
	_, ok := s.declared[t.TypeName()]
	return ok
}

func (s *scope) typeName(t *cel.Type) string {
	if s.isObject(t) {
		return "an object"
	}
	return t.String()
}

// Object is an object whose columns are computed, with the remaining cost for their expressions. It belongs to one
// goroutine.
type Object struct {
	value  map[string]any
	extent int // index of extents, -1 beyond
	left   int64
}

// NewObject returns an object, decoded JSON, with the cost for all its columns.
func NewObject(value map[string]any) *Object {
	return &Object{value: value, extent: within(value), left: columnsCost}
}

// Value returns the value of a cell as decoded JSON, and false if there is none: the expression fails, for instance at
// a missing field, returns null or an empty optional value, or costs too much.
func (c *Column) Value(o *Object) (value any, found bool) {
	out, err := c.evaluate(o, &activation{self: valueOf(o.value, c.self)})
	if err != nil {
		return nil, false
	}
	return plain.Cell(out)
}

func (c *Column) evaluate(o *Object, vars *activation) (ref.Val, error) {
	if o.extent >= 0 {
		if most := c.x.maxCosts[o.extent]; int64(most) >= 0 && int64(most) <= o.left {
			o.left -= int64(most)
			return run(c.x.program, vars)
		}
	}
	if o.left <= 0 {
		return nil, errors.New(outOfBudget)
	}
	program, err := c.x.tracked()
	if err != nil {
		return nil, err
	}
	var tracker *interpreter.CostTracker
	out, err := observe(program, vars, &tracker)
	if o.left -= int64(min(tracker.ActualCost(), 2*columnsCost)); o.left < 0 && err == nil {
		err = errors.New(outOfBudget)
	}
	return out, err
}
