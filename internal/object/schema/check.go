package schema

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object/schema/format"
)

// CheckOptions sets the strictness of checking a definition's schema. The Allow fields exist for definitions stored
// before a check existed: an update may keep the violation (see crd.ValidateUpdate).
type CheckOptions struct {
	// StatusSubresource restricts the root of the schema, because the status is validated with properties["status"]
	// alone.
	StatusSubresource bool
	// AllowNonStructural skips the structural rules, and with them the checks of defaults and of CEL rules.
	AllowNonStructural   bool
	AllowUnknownTypes    bool
	AllowUnprunedDefault bool
	AllowNonAtomicSets   bool
	AllowLooseMapKeys    bool
	// Rules checks that the CEL rules of the whole schema compile, and their cost. It is called only if schema and
	// defaults are structurally sound. skip reports whether the node at a path, or one below, has another error, so
	// that its rules cannot be checked. nil means no check.
	Rules func(root *Node, path *field.Path, skip func(path string) bool) field.ErrorList
	// DefaultRules checks a default against the CEL rules of its schema and below. resource is true for the root and
	// for embedded objects. budget is the evaluation cost left by the schema's other defaults, 0 for all of it; the
	// function returns the rest, negative when it is used up. nil means no check.
	DefaultRules func(node *Node, resource bool, path *field.Path, value any, budget int64) (field.ErrorList, int64)
	// Patterns is the budget for the patterns of all schemas of the definition. nil is a full one.
	Patterns *format.Patterns
	// Done is closed to skip the remaining defaults and rules. nil never skips.
	Done <-chan struct{}
}

// CheckDefinition returns all errors of a CustomResourceDefinition's schema; path is the path of props, which ends in
// "openAPIV3Schema". props is read only.
//
// The rules are those of the section "Specifying a structural schema" of the Kubernetes CRD documentation and of the
// API reference of JSONSchemaProps; texts, paths and error types are kube-apiserver's. kube-apiserver's order is random
// where it iterates over maps; here the order is that of the paths within each group of checks.
func CheckDefinition(props *apiextensionsv1.JSONSchemaProps, path *field.Path, o CheckOptions) field.ErrorList {
	if props == nil {
		return nil
	}
	at := &spot{base: path}
	errs := checkRoot(props, at, o.StatusSubresource)

	var missed error
	var root *Node // of a schema without errors so far
	if o.AllowNonStructural {
	} else if err := CheckSupported(props); err != nil {
		// The keyword checks below report most of these errors at their places; this one covers the rest.
		missed = err
	} else if found := checkStructural(props, at, o.Patterns); len(found) > 0 {
		errs = append(errs, found...)
	} else {
		found, sound := checkDefaults(props, path, o)
		errs = append(errs, found...)
		root = sound
	}

	k := keywords{options: o}
	k.check(props, at, keywordContext{}, true, 0)
	slices.SortStableFunc(k.errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	errs = append(errs, k.errs...)
	if root != nil && o.Rules != nil {
		errs = append(errs, o.Rules(root, path, func(node string) bool { return anyBelow(k.errs, node) })...)
	}
	if len(errs) == 0 && missed != nil {
		errs = append(errs, field.Invalid(path, "", missed.Error()))
	}
	return errs
}

// anyBelow reports whether an error is about node or about a path inside it. errs is sorted by path.
func anyBelow(errs field.ErrorList, node string) bool {
	for _, suffix := range []string{"", ".", "["} {
		path := node + suffix
		i, found := slices.BinarySearchFunc(errs, path, func(e *field.Error, path string) int {
			return strings.Compare(e.Field, path)
		})
		if found || suffix != "" && i < len(errs) && strings.HasPrefix(errs[i].Field, path) {
			return true
		}
	}
	return false
}

// HasSchema reports whether the predicate holds for props or any nested schema, in any keyword. The predicate must not
// keep its argument.
func HasSchema(props *apiextensionsv1.JSONSchemaProps, holds func(*apiextensionsv1.JSONSchemaProps) bool) bool {
	w := searcher{holds: holds}
	return w.search(props, 0)
}

type searcher struct {
	scratch
	holds func(*apiextensionsv1.JSONSchemaProps) bool
}

func (w *searcher) search(p *apiextensionsv1.JSONSchemaProps, depth int) bool {
	if p == nil {
		return false
	}
	if w.holds(p) {
		return true
	}
	if p.Items != nil && (w.search(p.Items.Schema, depth) || w.list(p.Items.JSONSchemas, depth)) {
		return true
	}
	if w.list(p.AllOf, depth) || w.list(p.AnyOf, depth) || w.list(p.OneOf, depth) || w.search(p.Not, depth) ||
		w.dictionary(p.Properties, depth) {
		return true
	}
	if p.AdditionalProperties != nil && w.search(p.AdditionalProperties.Schema, depth) {
		return true
	}
	if w.dictionary(p.PatternProperties, depth) || p.AdditionalItems != nil &&
		w.search(p.AdditionalItems.Schema, depth) || w.dictionary(p.Definitions, depth) {
		return true
	}
	for _, d := range p.Dependencies {
		if w.search(d.Schema, depth) {
			return true
		}
	}
	return false
}

func (w *searcher) list(l []apiextensionsv1.JSONSchemaProps, depth int) bool {
	for i := range l {
		if w.search(&l[i], depth) {
			return true
		}
	}
	return false
}

func (w *searcher) dictionary(m map[string]apiextensionsv1.JSONSchemaProps, depth int) bool {
	for k := range m {
		c := w.slot(depth)
		*c = m[k]
		if w.search(c, depth+1) {
			return true
		}
	}
	return false
}

// scratch holds one schema for each level of a walk. The values of a Properties map are not addressable, and copying
// each to the heap would be most of a walk's cost.
type scratch struct {
	slots []*apiextensionsv1.JSONSchemaProps
}

// slot returns the storage for a schema at the given depth; it is valid until the next call for that depth.
func (s *scratch) slot(depth int) *apiextensionsv1.JSONSchemaProps {
	for len(s.slots) <= depth {
		s.slots = append(s.slots, &apiextensionsv1.JSONSchemaProps{})
	}
	return s.slots[depth]
}

// spot is a position in a schema, linked from the inside to the outside. It is converted to a path only for an error.
type spot struct {
	base  *field.Path // of the outermost spot
	up    *spot
	name  string
	key   string
	index int
	kind  spotKind
}

type spotKind int

const (
	plainSpot spotKind = iota
	keySpot            // name[key]
	indexSpot          // name[index]
)

func (s *spot) path() *field.Path {
	if s.up == nil {
		return s.base
	}
	p := s.up.path().Child(s.name)
	switch s.kind {
	case keySpot:
		return p.Key(s.key)
	case indexSpot:
		return p.Index(s.index)
	}
	return p
}

// child returns the path of a keyword at the spot.
func (s *spot) child(name string) *field.Path { return s.path().Child(name) }

// HasUnknownType reports whether p itself has a type unknown to OpenAPI.
func HasUnknownType(p *apiextensionsv1.JSONSchemaProps) bool {
	return p.Type != "" && !slices.Contains(types, p.Type)
}

// HasNonAtomicSet reports whether p itself is a list of type set with non-atomic items.
func HasNonAtomicSet(p *apiextensionsv1.JSONSchemaProps) bool { return hasNonAtomicSet(p) }

// HasLooseMapKeys reports whether p itself is a set or map list with items or keys that may be null or missing.
func HasLooseMapKeys(p *apiextensionsv1.JSONSchemaProps) bool {
	return len(looseMapKeys(p, &spot{})) > 0
}
