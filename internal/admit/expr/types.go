package expr

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// Type is a type that the result of an expression may have to have.
type Type = cel.Type

// Types of results.
var (
	Any    = cel.AnyType
	Bool   = cel.BoolType
	String = cel.StringType
	Null   = cel.NullType
	// Applied is the type Object, an apply configuration.
	Applied = types.NewObjectType("Object")
	// JSONPatches is a list of JSONPatch.
	JSONPatches = cel.ListType(types.NewObjectType("JSONPatch"))
)

// Problems returns the compile error of the expression at path, if any. value is the field's.
func (e *Expression) Problems(path *field.Path, value string) field.ErrorList {
	if e.Err == nil {
		return nil
	}
	switch e.Err.Type {
	case apiservercel.ErrorTypeRequired:
		return field.ErrorList{field.Required(path, e.Err.Detail)}
	case apiservercel.ErrorTypeInvalid:
		return field.ErrorList{field.Invalid(path, value, e.Err.Detail)}
	}
	return field.ErrorList{field.InternalError(path, e.Err)}
}

// EndsAll reports whether an error of Run means that the budget is spent or the evaluator is broken.
func EndsAll(err error) bool {
	return errors.Is(err, apiservercel.ErrInternal) || errors.Is(err, apiservercel.ErrOutOfBudget)
}

// True reports whether the result is true.
func (r Result) True() bool { return r.Value == types.True }

// Text returns a string result.
func (r Result) Text() (string, bool) {
	if r.Value == nil {
		return "", false
	}
	s, ok := r.Value.Value().(string)
	return s, ok
}

// Absent reports whether the result is null.
func (r Result) Absent() bool { return r.Value != nil && r.Value.Type() == types.NullType }

// TypeName names the type of the result in errors.
func (r Result) TypeName() string { return fmt.Sprint(r.Value.Type()) }

var identifier = regexp.MustCompile("^[_a-zA-Z][_a-zA-Z0-9]*$")

// reserved are the words of the language.
var reserved = []string{
	"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
	"loop", "package",
	"namespace", "return", "var", "void", "while",
}

// IsIdentifier reports whether a variable can have a name.
func IsIdentifier(name string) bool {
	return identifier.MatchString(name) && !slices.Contains(reserved, name)
}
