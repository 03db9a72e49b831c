// Package schema implements structural schemas: it prunes, defaults and validates custom objects exactly like
// kube-apiserver.
//
// It stands between decoding and storing on the path of a write, and after decoding on the path of a read from storage.
// Compile turns the schema of a definition into a Schema, a tree of Nodes with everything precomputed that does not
// depend on the object. NormalizeRequest and NormalizeStored normalize objects, and Validate reports their errors.
//
// Validation has two implementations, on purpose. valid.go only decides: it keeps no paths, counts nothing and
// allocates nothing, and nearly every object passes it. Only for an object that fails, explain.go walks again and
// produces the errors, in Kubernetes' words and with its rules for choosing among the alternatives of anyOf and oneOf.
// FuzzSchema and the oracle tests check that the two agree.
//
// The package is pure: values in, values out. A Schema and its Nodes are immutable after Compile and safe for
// concurrent use; an object belongs to the caller, and only the Normalize methods change it, in place.
//
// Rules: "Extend the Kubernetes API with CustomResourceDefinitions", KEP-1111 (pruning, defaulting), KEP-4008
// (ratcheting); test/oracle/schema compares with k8s.io/apiextensions-apiserver.
package schema

import (
	"context"
	"hash/maphash"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Options of Compile.
type Options struct {
	// PreserveUnknownFields turns pruning off at the root (spec.preserveUnknownFields of old definitions).
	PreserveUnknownFields bool
	// Scale is the version's scale subresource; the fields at its paths are validated, too. nil means none.
	Scale *apiextensionsv1.CustomResourceSubresourceScale
	// Sensitive reports which nodes are Sensitive, by the names of the fields that lead to them; "" stands for the
	// items of a list and for fields without a name in the schema. nil means none.
	Sensitive func(path []string) bool
	// Rules compiles the tree's CEL rules (package schema/cel provides it); nil means that rules are not evaluated. It
	// is called only if the schema has rules.
	Rules func(root *Node) (Evaluator, error)
}

// Evaluator runs the CEL rules of a whole schema against an object.
type Evaluator interface {
	// Evaluate returns the failures of all rules. old is nil on create. Ratcheting accepts unchanged failures of an
	// update: warn receives them instead, unless it is nil. If ctx ends, the rest of the rules is not run.
	Evaluate(ctx context.Context, obj, old map[string]any, warn func(*field.Error)) field.ErrorList
}

// Schema is a compiled structural schema.
type Schema struct {
	root     *Node
	preserve bool // Options.PreserveUnknownFields
	scale    *apiextensionsv1.CustomResourceSubresourceScale
	rules    Evaluator // nil without rules
	seed     maphash.Seed
}

// Compile compiles a structural schema. It neither keeps nor changes props; nil declares nothing.
//
// Compile accepts some schemas that the definition's validation refuses: an error means that the schema cannot be
// interpreted. A bad pattern is not an error; as in Kubernetes, it matches nothing.
func Compile(props *apiextensionsv1.JSONSchemaProps, o Options) (*Schema, error) {
	if props == nil {
		props = &apiextensionsv1.JSONSchemaProps{}
	}
	c := compiler{sensitive: o.Sensitive}
	root, err := c.node(props, true, nil)
	if err != nil {
		return nil, err
	}
	s := &Schema{root: root, preserve: o.PreserveUnknownFields, scale: o.Scale, seed: maphash.MakeSeed()}
	if c.defaults {
		if !o.PreserveUnknownFields {
			if err := pruneDefaults(root); err != nil {
				return nil, err
			}
		}
		expandDefaults(root)
	}
	if c.rules && o.Rules != nil {
		if s.rules, err = o.Rules(root); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Root returns the schema's tree, read only, for field ownership, columns and documents.
func (s *Schema) Root() *Node { return s.root }
