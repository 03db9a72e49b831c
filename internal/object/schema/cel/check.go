package cel

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel/maxcost"
	"github.com/bowsprit/bowsprit/internal/object/schema/format"
)

// Limits of estimated costs: of one rule, times the number of its values, and of all rules of a schema.
const (
	ruleCostLimit   = 10_000_000
	schemaCostLimit = 100_000_000
)

// CheckOptions configures Check. The zero value is for a new definition.
type CheckOptions struct {
	// PreexistingRules and PreexistingMessages hold the expressions of the definition before an update. They are
	// checked with the environment for stored expressions.
	PreexistingRules, PreexistingMessages map[string]bool
	// SuppressPerExpressionCost drops the limit for single rules: the update does not change the schema.
	SuppressPerExpressionCost bool
	// Skip reports whether the rules of the node at path cannot be checked, because the schema there or below has other
	// errors. It is called only for nodes with rules. nil skips none.
	Skip func(path string) bool
	// Patterns is the budget for the patterns that the expressions of the definition hold. nil is a full one.
	Patterns *format.Patterns
	// Done is closed to skip the remaining rules. nil never skips.
	Done <-chan struct{}
}

// Check returns the errors in the rules of a definition's schema, apart from errors that are visible without compiling
// (package schema checks those). path is the path of root.
//
// As in kube-apiserver, rules below allOf, anyOf, oneOf and not are ignored.
func Check(root *schema.Node, path *field.Path, o CheckOptions) field.ErrorList {
	if o.Patterns == nil {
		o.Patterns = new(format.Patterns)
	}
	c := check{options: o, ruled: map[*schema.Node]bool{}}
	if !c.find(root) {
		return nil
	}
	one := uint64(1)
	top := &site{node: root, step: step{base: path}, ruled: len(root.Rules) > 0, repeats: &one}
	c.visit(top, nil)
	c.total(path)
	return c.errs
}

// check is one run of Check.
type check struct {
	options CheckOptions
	ruled   map[*schema.Node]bool // nodes with rules in them or below
	errs    field.ErrorList
	sum     uint64
	dearest []ruleCost // the most expensive rules, dearest first
}

type ruleCost struct {
	path *field.Path
	cost uint64
}

// find records which nodes have rules in them or below.
func (c *check) find(n *schema.Node) bool {
	if n == nil {
		return false
	}
	found := len(n.Rules) > 0
	found = c.find(n.Items) || found
	found = c.find(n.AdditionalProperties) || found
	for _, p := range n.Properties {
		found = c.find(p) || found
	}
	if found {
		c.ruled[n] = true
	}
	return found
}

// site is a node on the way to a rule.
type site struct {
	node    *schema.Node
	parent  *site
	step    step
	ruled   bool    // the node or one above has rules: its type is part of their types
	repeats *uint64 // maximum number of values of the node in an object; nil: the schema sets no bound

	typed  typedNode
	err    error
	looked bool
}

// step is the last element of a path.
type step struct {
	base    *field.Path // of the root
	keyword string
	name    string // of a property
}

func (s *site) path() *field.Path {
	if s.parent == nil {
		return s.step.base
	}
	p := s.parent.path().Child(s.step.keyword)
	if s.step.keyword == "properties" {
		p = p.Key(s.step.name)
	}
	return p
}

// child returns the site of a node below s.
func (s *site) child(n *schema.Node, by step) *site {
	c := &site{node: n, parent: s, step: by, ruled: s.ruled || len(n.Rules) > 0}
	if per := s.childrenPerValue(); s.repeats != nil && per != nil {
		r := maxcost.Times(*s.repeats, *per)
		c.repeats = &r
	}
	return c
}

// childrenPerValue returns the maximum number of a child's values in one value of s, nil if there is no bound.
func (s *site) childrenPerValue() *uint64 {
	n, bound := s.node, (*int64)(nil)
	switch {
	case n.Type == "array":
		bound = n.MaxItems
	case n.Type == "object" && (n.AdditionalProperties != nil || n.AllowsAdditional):
		bound = n.MaxProps
	default:
		one := uint64(1)
		return &one
	}
	if bound == nil {
		return nil
	}
	most := atLeastZero(*bound)
	return &most
}

// typedNode returns the node of s for the types of its rules: as part of the enclosing type, if rules above use it.
func (s *site) typedNode() (typedNode, error) {
	if !s.looked {
		s.looked = true
		s.typed, s.err = s.findTypedNode()
	}
	return s.typed, s.err
}

func (s *site) findTypedNode() (typedNode, error) {
	if s.parent != nil && s.parent.ruled {
		above, err := s.parent.typedNode()
		if err != nil {
			return typedNode{}, err
		}
		switch s.step.keyword {
		case "properties":
			if p, ok := above.typeOf(s.step.name, s.node); ok {
				return p, nil
			}
		default:
			return above.elemOrNone(), nil
		}
	}
	if !visible(s.node) {
		return typedNode{}, errors.New("unable to convert structural schema to CEL declarations")
	}
	return typedNode{s.node, s.parent == nil || s.node.Embedded}, nil
}

// visit checks the rules of s and below. fixed is the path of the first enclosing list or map with old values that
// cannot be matched with new ones, or nil.
func (c *check) visit(s *site, fixed *site) {
	n := s.node
	if c.ruled[n.AdditionalProperties] {
		c.visit(s.child(n.AdditionalProperties, step{keyword: "additionalProperties"}), fixed)
	}
	below := fixed
	if below == nil && n.MapType != "" && n.MapType != "granular" && n.MapType != "atomic" {
		below = s
	}
	var names []string
	for name, p := range n.Properties {
		if c.ruled[p] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		c.visit(s.child(n.Properties[name], step{keyword: "properties", name: name}), below)
	}
	if c.ruled[n.Items] {
		below := fixed
		if below == nil && n.ListType != "map" {
			below = s
		}
		c.visit(s.child(n.Items, step{keyword: "items"}), below)
	}
	if len(n.Rules) > 0 {
		c.rules(s, fixed)
	}
}

// rules checks the rules of s itself.
func (c *check) rules(s *site, fixed *site) {
	path := s.path()
	if c.options.Skip != nil && c.options.Skip(path.String()) {
		return
	}
	path = path.Child("x-kubernetes-validations")
	self, err := s.typedNode()
	switch {
	case err != nil:
		c.add(field.InternalError(path,
			fmt.Errorf("internal error: failed to construct type information for x-kubernetes-validations rules: %s",
				err)))
		return
	case self.node == nil:
		c.add(field.InternalError(path, errNoType))
		return
	}
	scope := newScope(self, s.node.Rules)
	for i := range s.node.Rules {
		select {
		case <-c.options.Done:
			return
		default:
			c.rule(s, scope, &s.node.Rules[i], path.Index(i), fixed)
		}
	}
}

func (c *check) rule(s *site, scope *scope, r *apiextensionsv1.ValidationRule, path *field.Path, fixed *site) {
	if strings.TrimSpace(r.Rule) == "" {
		return
	}
	if err := takePatterns(c.options.Patterns, r.Rule); err != nil {
		c.add(field.Invalid(path.Child("rule"), internalRule(r), err.Error()))
		return
	}
	optional := r.OptionalOldSelf != nil && *r.OptionalOldSelf
	condition, cost, err := compileAndEstimate(scope, c.options.PreexistingRules[r.Rule], r.Rule, optional, ruleRole)
	usesOldSelf := false
	if err != nil {
		c.add(field.Invalid(path.Child("rule"), internalRule(r), err.Error()))
	} else {
		usesOldSelf = condition.usesOldSelf
		repeats := maxRepeats(scope.self.minSize())
		if s.repeats != nil {
			repeats = *s.repeats
		}
		c.cost(path.Child("rule"), "estimated rule cost", maxcost.Times(cost, repeats))
		if r.MessageExpression != "" {
			c.message(scope, r, path.Child("messageExpression"), optional)
		}
	}
	switch {
	case usesOldSelf && fixed != nil:
		c.add(field.Invalid(path.Child("rule"), r.Rule,
			fmt.Sprintf("oldSelf cannot be used on the uncorrelatable portion of the schema within %v", fixed.path())))
	case !usesOldSelf && r.OptionalOldSelf != nil:
		c.add(field.Invalid(path.Child("optionalOldSelf"), *r.OptionalOldSelf,
			"may not be set if oldSelf is not used in rule"))
	}
}

func (c *check) message(scope *scope, r *apiextensionsv1.ValidationRule, path *field.Path, optional bool) {
	if err := takePatterns(c.options.Patterns, r.MessageExpression); err != nil {
		c.add(field.Invalid(path, internalRule(r), err.Error()))
		return
	}
	_, cost, err := compileAndEstimate(scope, c.options.PreexistingMessages[r.MessageExpression], r.MessageExpression,
		optional, messageRole)
	if err != nil {
		c.add(field.Invalid(path, internalRule(r), err.Error()))
		return
	}
	c.cost(path, "estimated messageExpression cost", cost)
}

// compileAndEstimate compiles a new expression or, if preexisting, a stored one.
func compileAndEstimate(s *scope, preexisting bool, source string, optional bool, r role) (*expression, uint64, error) {
	env := newExpressions
	if preexisting {
		env = storedExpressions
	}
	x, err := s.compile(env(), source, optional, r)
	if err != nil {
		return nil, 0, err
	}
	cost, err := env().estimate(x.ast, s.self)
	if err != nil {
		return nil, 0, errors.New(r.estimating + err.Error())
	}
	return x, cost, nil
}

// internalRule is a rule as kube-apiserver prints it, with the names of its internal type.
func internalRule(r *apiextensionsv1.ValidationRule) apiextensions.ValidationRule {
	return apiextensions.ValidationRule{
		Rule: r.Rule, Message: r.Message, MessageExpression: r.MessageExpression,
		Reason: (*apiextensions.FieldValueErrorReason)(r.Reason), FieldPath: r.FieldPath,
		OptionalOldSelf: r.OptionalOldSelf,
	}
}

// cost checks the cost of one expression and adds it to the schema's.
func (c *check) cost(path *field.Path, noun string, cost uint64) {
	if cost > ruleCostLimit && !c.options.SuppressPerExpressionCost {
		c.add(field.Forbidden(path, tooExpensive(noun, cost, ruleCostLimit)))
	}
	if c.sum > math.MaxUint64-cost {
		c.sum = math.MaxUint64
	} else {
		c.sum += cost
	}
	if cost < schemaCostLimit/100 {
		return
	}
	c.dearest = append(c.dearest, ruleCost{path, cost})
	slices.SortStableFunc(c.dearest, func(a, b ruleCost) int {
		switch {
		case a.cost > b.cost:
			return -1
		case a.cost < b.cost:
			return 1
		}
		return 0
	})
	c.dearest = c.dearest[:min(len(c.dearest), 4)]
}

// total checks the cost of all expressions together.
func (c *check) total(path *field.Path) {
	if c.sum <= schemaCostLimit {
		return
	}
	for _, r := range c.dearest {
		c.add(field.Forbidden(r.path,
			"contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"))
	}
	c.add(field.Forbidden(path,
		tooExpensive("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", c.sum,
			schemaCostLimit)))
}

func tooExpensive(noun string, cost, limit uint64) string {
	factor := float64(cost) / float64(limit)
	times := fmt.Sprintf("%.1fx", factor)
	switch {
	case factor > 100:
		times = "more than 100x"
	case factor < 1.5:
		times = fmt.Sprintf("%fx", factor) // not "1.0x"
	}
	return fmt.Sprintf(
		"%s exceeds budget by factor of %s (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)", noun, times)
}

func (c *check) add(err *field.Error) { c.errs = append(c.errs, err) }
