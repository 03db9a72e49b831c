package schema

import (
	"regexp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Node is one place of a structural schema, or of a schema below allOf, anyOf, oneOf or not. It is read only, and may
// be shared by several places that say the same.
type Node struct {
	Type                 string // "", object, array, string, integer, number, boolean
	Format               string // as written, whether or not kube knows it
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
	Sensitive            bool   // masked as a whole; what is below such a node is, too
	Default              any    // decoded JSON, pruned; HasDefault tells a null default from none
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

	types   kinds // what Type and IntOrString declare; 0 means any
	accepts kinds // what passes the type check, see acceptedKinds
	flags   flags
	id      uint32         // among the nodes of one schema, for interner
	fields  []property     // Properties, sorted by name
	format  *checkedFormat // of strings; nil if there is none that kube checks
	numeric *numeric       // nil if numbers are not bounded
	pattern *regexp.Regexp
	badRE   string     // why Pattern does not compile
	fills   []property // properties with a default, sorted by name

	expanded any // Default with the defaults below it filled in
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
	kindUnknown // a type name that JSON does not have; nothing is of it
)

// flags say which steps a node needs, so that the steps it does not need cost one test.
type flags uint16

const (
	hasAdditional flags = 1 << iota // additionalProperties is given: true, false or a schema
	closed                          // additionalProperties: false
	hasJunctions                    // allOf, anyOf, oneOf or not
	hasText                         // bounds on strings
	listSet                         // x-kubernetes-list-type: set
	listMap                         // x-kubernetes-list-type: map
	metaBelow                       // it or something below it is an embedded resource
	listsBelow                      // it or something below it is a set or map list
	defaultsBelow                   // it or something below it has a default
	// it or something below it is an object of which structured-merge-diff takes fields that are pruned: one without
	// declared fields, or one below an object that preserves unknown ones, which means all below it there
	looseBelow
	boundsChildren // properties or additionalProperties exist
	unique         // must not be shared, see interner
)

func (f flags) has(g flags) bool { return f&g != 0 }

// child returns the node that governs the property key, and whether the schema knows the key. The node is nil for a key
// known through additionalProperties: true or false.
func (n *Node) child(key string) (*Node, bool) {
	if c, ok := n.Properties[key]; ok {
		return c, true
	}
	return n.AdditionalProperties, n.flags.has(hasAdditional)
}
