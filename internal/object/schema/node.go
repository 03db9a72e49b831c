package schema

import (
	"regexp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Node is one place of a structural schema, or of a schema below allOf, anyOf, oneOf or not. It is read only, and equal
// places may share it.
type Node struct {
	Type                 string // "", object, array, string, integer, number, boolean
	Format               string // as written, known or not
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
	Sensitive            bool   // masked completely, including everything below
	Default              any    // decoded JSON, pruned; HasDefault distinguishes a null default from none
	HasDefault           bool

	// Bounds of values, for validation and for estimating the cost of rules.
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

	types   kinds // types declared by Type and IntOrString; 0 means any
	accepts kinds // types that pass the type check, see acceptedKinds
	flags   flags
	id      uint32         // unique among the nodes of one schema, for interner
	fields  []property     // Properties, sorted by name
	format  *checkedFormat // of strings; nil if there is none or it is unknown
	numeric *numeric       // nil if numbers are not bounded
	pattern *regexp.Regexp
	size    int        // of pattern, in instructions
	badRE   string     // error in Pattern
	fills   []property // properties with a default, sorted by name

	expanded any // Default with its nested defaults

	anyFormat bool // Format counts, whether known or not: see checkDefaults
}

// property is one declared property.
type property struct {
	name string
	node *Node
}

// kinds is a set of JSON types.
type kinds uint8

const (
	kindObject kinds = 1 << iota
	kindArray
	kindString
	kindInteger
	kindNumber
	kindBoolean
	kindUnknown // a type name that JSON lacks; no value has it
)

// flags selects the steps that a node needs, so that skipping the others costs one test.
type flags uint16

const (
	hasAdditional flags = 1 << iota // additionalProperties is given: true, false or a schema
	closed                          // additionalProperties: false
	hasJunctions                    // allOf, anyOf, oneOf or not
	hasText                         // bounds on strings
	listSet                         // x-kubernetes-list-type: set
	listMap                         // x-kubernetes-list-type: map
	metaBelow                       // the node or one below is an embedded resource
	listsBelow                      // the node or one below is a set or map list
	defaultsBelow                   // the node or one below has a default
	// the node or one below is an object in which structured-merge-diff accepts fields that are pruned: without
	// declared fields, or below an object that preserves unknown fields (structured-merge-diff extends that to all
	// descendants)
	looseBelow
	boundsChildren // properties or additionalProperties exist
	unique         // must not be shared, see interner
)

func (f flags) has(g flags) bool { return f&g != 0 }

// child returns the node for the property key, and whether the schema allows the key. The node is nil for a key allowed
// by additionalProperties: true or false.
func (n *Node) child(key string) (*Node, bool) {
	if c, ok := n.Properties[key]; ok {
		return c, true
	}
	return n.AdditionalProperties, n.flags.has(hasAdditional)
}
