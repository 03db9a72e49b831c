package cel

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/interpreter"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel/fieldpath"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel/maxcost"
)

// Rules are the rules of a schema, ready to be evaluated on objects. They compile themselves when an object needs them.
type Rules struct {
	node     *schema.Node
	resource bool
	tree     func() *branch
}

var _ schema.Evaluator = (*Rules)(nil)

// Compile returns the rules of the schema of a custom resource, or nil if it has none. It is schema.Options.Rules.
func Compile(root *schema.Node) (schema.Evaluator, error) {
	if r := New(root, true); r != nil {
		return r, nil
	}
	return nil, nil // not a nil *Rules in an interface
}

// New returns the rules of node and of everything below, or nil if there are none. resource is true if node is the root
// of a custom or embedded resource.
//
// As in kube-apiserver, a schema with rules only below allOf has no rules.
func New(node *schema.Node, resource bool) *Rules {
	if !hasRules(node) {
		return nil
	}
	r := &Rules{node: node, resource: resource}
	r.tree = sync.OnceValue(func() *branch {
		p, ok := typedNode{node, resource}, visible(node)
		if !ok {
			p = typedNode{}
		}
		return newBranch(node, node, resource, p)
	})
	return r
}

func hasRules(n *schema.Node) bool {
	if n == nil {
		return false
	}
	if len(n.Rules) > 0 || hasRules(n.Items) || hasRules(n.AdditionalProperties) {
		return true
	}
	for _, c := range n.Properties {
		if hasRules(c) {
			return true
		}
	}
	return false
}

// branch is a place of the schema with rules in it or below.
type branch struct {
	node     *schema.Node
	resource bool
	typed    typedNode // node for types; zero if its type is unknown

	rules    apiextensionsv1.ValidationRules // of node, or of a branch of its allOf
	compiled func() (*compiledRules, error)  // compiles on first use

	allOf      []*branch
	additional *branch
	items      *branch
	properties []namedBranch // sorted by name
}

type namedBranch struct {
	name string
	*branch
}

// compiledRules holds the rules of one branch.
type compiledRules struct {
	rules       []compiledRule // as branch.rules
	usesOldSelf bool           // at least one of them does
}

type compiledRule struct {
	rule      *apiextensionsv1.ValidationRule
	err       error      // compile error; or
	condition *evaluable // nil if the rule is empty
	message   *evaluable // nil without messageExpression
	fieldPath string     // normalized, "" if there is none
}

// optional reports whether oldSelf is an optional value in the rule.
func (r *compiledRule) optional() bool {
	return r.rule.OptionalOldSelf != nil && *r.rule.OptionalOldSelf
}

// evaluable is an expression that can be run with and without counting its costs.
type evaluable struct {
	source      string
	usesOldSelf bool
	program     interpreter.Interpretable
	maxCosts    [len(extents)]uint64                                 // on objects of these extents
	tracked     func() (*interpreter.ObservableInterpretable, error) // plans on first use: few rules need it
}

// newBranch returns the branch of node with the rules of rules: node itself, or a branch of its allOf. It returns nil
// if there are no rules.
func newBranch(rules, node *schema.Node, resource bool, typed typedNode) *branch {
	b := &branch{node: node, resource: resource, typed: typed, rules: rules.Rules}
	if rules.Items != nil && node.Items != nil {
		b.items = newBranch(rules.Items, node.Items, node.Items.Embedded, typed.elemOrNone())
	}
	for _, name := range sortedNames(rules.Properties) {
		child := node.Properties[name]
		if child == nil {
			continue // rules may only be added to declared fields
		}
		t, ok := typed.typeOf(name, child)
		if !ok {
			continue
		}
		if c := newBranch(rules.Properties[name], child, child.Embedded, t); c != nil {
			b.properties = append(b.properties, namedBranch{name, c})
		}
	}
	if rules.AdditionalProperties != nil && node.AdditionalProperties != nil {
		b.additional = newBranch(rules.AdditionalProperties, node.AdditionalProperties,
			node.AdditionalProperties.Embedded,
			typed.elemOrNone())
	}
	for _, r := range rules.AllOf {
		if c := newBranch(r, node, resource, typed); c != nil {
			b.allOf = append(b.allOf, c)
		}
	}
	if len(b.rules) == 0 && b.items == nil && b.additional == nil && len(b.properties) == 0 && len(b.allOf) == 0 {
		return nil
	}
	b.compiled = sync.OnceValues(b.compile)
	return b
}

func sortedNames(properties map[string]*schema.Node) []string {
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

// elemOrNone is elem, or the zero node if that is unknown.
func (p typedNode) elemOrNone() typedNode {
	if p.node == nil {
		return typedNode{}
	}
	e, _ := p.elem()
	return e
}

// typeOf returns the node of a property of p for the property's own rules. Properties of unknown types are left out; a
// property whose name is invalid in expressions still has its own rules.
func (p typedNode) typeOf(name string, child *schema.Node) (typedNode, bool) {
	if _, ok := apiservercel.Escape(name); ok {
		if p.node == nil || p.node.IntOrString || p.node.Type != "object" || p.isMap() {
			return typedNode{}, false
		}
		return p.child(name)
	}
	return typedNode{child, child.Embedded}, visible(child)
}

var errNoType = errors.New("failed to convert to declType for CEL validation rules")

// compile compiles the rules of b.
func (b *branch) compile() (*compiledRules, error) {
	c := &compiledRules{}
	if len(b.rules) == 0 {
		return c, nil
	}
	if b.typed.node == nil {
		return nil, errNoType
	}
	scope := newScope(b.typed, b.rules)
	env := storedExpressions()
	c.rules = make([]compiledRule, len(b.rules))
	for i := range c.rules {
		r := &c.rules[i]
		r.rule = &b.rules[i]
		if strings.TrimSpace(r.rule.Rule) == "" {
			continue
		}
		if r.condition, r.err = b.evaluable(scope, env, r.rule.Rule, r.optional(), ruleRole); r.err != nil {
			continue
		}
		c.usesOldSelf = c.usesOldSelf || r.condition.usesOldSelf
		if r.rule.MessageExpression != "" {
			var err error
			if r.message, err = b.evaluable(scope, env, r.rule.MessageExpression, r.optional(),
				messageRole); err != nil {
				continue // the message replaces it; as in Kubernetes, the field path is lost
			}
		}
		if r.rule.FieldPath != "" {
			if path, _, err := fieldpath.Resolve(r.rule.FieldPath, b.node); err == nil {
				r.fieldPath = path.String()
			}
		}
	}
	return c, nil
}

func (b *branch) evaluable(s *scope, env *environment, source string, optional bool, r role) (*evaluable, error) {
	x, err := s.compile(env, source, optional, r)
	if err != nil {
		return nil, err
	}
	e := &evaluable{source: source, usesOldSelf: x.usesOldSelf, program: x.program}
	for i := range extents {
		e.maxCosts[i] = maxcost.Of(x.ast.NativeRep(), extents[i])
	}
	e.tracked = sync.OnceValues(func() (*interpreter.ObservableInterpretable, error) {
		return newScope(b.typed, b.rules).tracked(env, source, optional, r)
	})
	return e, nil
}
