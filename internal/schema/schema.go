// Package schema
package schema

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Options of Compile.
type Options struct {
	// PreserveUnknownFields turns pruning off at the root (spec.preserveUnknownFields of old definitions).
	PreserveUnknownFields bool
	// Rules compiles the tree's CEL rules (package schema/cel provides it); nil means that rules are not evaluated.
	Rules func(root *Node) (Evaluator, error)
}

// Evaluator runs the CEL rules of a whole schema against an object.
type Evaluator interface {
	// Evaluate returns the failures of all rules. old is nil on create; unchanged failures of an update are left out as
	// ratcheting demands.
	Evaluate(obj, old map[string]any) field.ErrorList
}

// Schema is a compiled structural schema.
type Schema struct {
	root *Node
}

// Compile makes the program of a structural schema.
func Compile(props *apiextensionsv1.JSONSchemaProps, o Options) (*Schema, error) { panic("stub") }

// Root returns the schema's tree, read only: what field ownership, columns and documents need to know of it.
func (s *Schema) Root() *Node { return s.root }

// Node is one place of a structural schema. It is read only.
type Node struct {
	Type                 string // "", object, array, string, integer, number, boolean
	Format               string
	Nullable             bool
	Properties           map[string]*Node
	Items                *Node
	AdditionalProperties *Node // nil with AllowsAdditional false: none
	AllowsAdditional     bool  // additionalProperties: true
	PreserveUnknown      bool
	Embedded             bool
	IntOrString          bool
	ListType             string // "", atomic, set, map
	ListMapKeys          []string
	MapType              string // "", granular, atomic
	Default              any    // decoded JSON; HasDefault tells a null default from none
	HasDefault           bool

	// What bounds values, for validation and for estimating the cost of rules.
	Enum                               []any
	Pattern                            string
	Required                           []string
	MaxItems, MaxLength, MaxProps      *int64
	MinItems, MinLength, MinProps      *int64
	Minimum, Maximum, MultipleOf       *float64
	ExclusiveMinimum, ExclusiveMaximum bool
	AllOf, AnyOf, OneOf                []*Node
	Not                                *Node
	Rules                              apiextensionsv1.ValidationRules // x-kubernetes-validations
}

// Normalize drops unknown fields and disallowed nulls from obj and fills in defaults, in place.
// It returns the paths of the fields it dropped because the schema does not declare them, as kube prints them.
func (s *Schema) Normalize(obj map[string]any) (unknown []string) { panic("stub") }

// Validate returns everything that is wrong with obj. old is the object before an update (nil on create): what was
// wrong and has not changed passes.
func (s *Schema) Validate(obj, old map[string]any) field.ErrorList { panic("stub") }
