package cel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/bowsprit/bowsprit/internal/object/schema"
)

// EvalOptions of EvaluateAt.
type EvalOptions struct {
	// Budget is the cost that the rules may spend; 0 means that of a request, celconfig.RuntimeCELCostBudget.
	Budget int64
	// NoRatchet reports old failures, too.
	NoRatchet bool
}

// Evaluate runs the rules on obj. old is the object before an update, nil on create: rules with oldSelf need it, and
// old failures pass: warn receives them, because kube-apiserver sends them as warnings; nil drops them. obj must have
// passed the value checks of its schema, in particular its limits. If ctx ends, the remaining rules are skipped.
func (r *Rules) Evaluate(ctx context.Context, obj, old map[string]any, warn func(*field.Error)) field.ErrorList {
	var before any
	if old != nil {
		before = old
	}
	e := evaluation{budget: celconfig.RuntimeCELCostBudget, warn: warn, done: ctx.Done()}
	return e.run(r, nil, obj, before, true)
}

// EvaluateAt runs the rules on a value of any type at path. It returns the rest of the budget, negative when exceeded.
//
// kube-apiserver checks a default twice: as an update of itself without ratcheting, then, if that succeeds, as new.
func (r *Rules) EvaluateAt(path *field.Path, v, old any, o EvalOptions) (field.ErrorList, int64) {
	e := evaluation{budget: o.Budget, exact: true}
	if e.budget == 0 {
		e.budget = celconfig.RuntimeCELCostBudget
	}
	errs := e.run(r, path, v, old, !o.NoRatchet)
	return errs, e.budget
}

// run evaluates the rules, first in the hope that budgets do not matter.
func (e *evaluation) run(r *Rules, path *field.Path, v, old any, ratchet bool) field.ErrorList {
	var l lineage
	if ratchet && old != nil {
		l.here = pair{r.node, v, old, true}
	}
	tree := r.tree()
	if tree == nil {
		return nil
	}
	budget := e.budget
	if !e.exact {
		e.extent = within(v, old)
	}
	tree.evaluate(e, location{base: path}, v, old, l)
	if e.uncertain {
		*e = evaluation{budget: budget, exact: true, warn: e.warn, done: e.done}
		tree.evaluate(e, location{base: path}, v, old, l)
	}
	if e.warn != nil {
		for _, w := range e.warnings {
			e.warn(w)
		}
	}
	return e.errs
}

// location is where in the object evaluation is. It becomes a field.Path only for a failure.
type location struct {
	base   *field.Path // of the root
	parent *location   // nil at the root
	kind   locationKind
	name   string
	index  int
}

type locationKind uint8

const (
	atRoot locationKind = iota
	atChild
	atKey
	atIndex
)

func (l *location) path() *field.Path {
	switch l.kind {
	case atChild:
		return l.parent.path().Child(l.name)
	case atKey:
		return l.parent.path().Key(l.name)
	case atIndex:
		return l.parent.path().Index(l.index)
	}
	return l.base
}

// evaluate runs the rules of b and below. It returns false if no further rules may be run.
func (b *branch) evaluate(e *evaluation, at location, v, old any, l lineage) bool {
	if v == nil {
		return true // rules see nulls only from outside
	}
	if len(b.rules) > 0 && !b.evaluateRules(e, &at, v, old, l) {
		return false
	}
	for _, c := range b.allOf {
		// Rules in allOf are never ratcheted by their own place.
		if !c.evaluate(e, at, v, old, lineage{above: l.above}) {
			return false
		}
	}
	switch v := v.(type) {
	case map[string]any:
		was, _ := old.(map[string]any)
		return b.evaluateFields(e, &at, v, was, l)
	case []any:
		if b.items == nil {
			return true
		}
		was, _ := old.([]any)
		k := newKeyed(b.node, was)
		for i := range v {
			prior := k.find(v[i])
			if !b.items.evaluate(e, location{parent: &at, kind: atIndex, index: i}, v[i], prior, l.item(v[i], prior)) {
				return false
			}
		}
	}
	return true
}

func (b *branch) evaluateFields(e *evaluation, at *location, v, old map[string]any, l lineage) bool {
	if t := b.node.MapType; t != "" && t != "granular" && t != "atomic" {
		old = nil
	}
	if b.additional != nil {
		for _, name := range sortedKeys(v) {
			if !b.additional.evaluate(e, location{parent: at, kind: atKey, name: name}, v[name], old[name],
				l.property(name)) {
				return false
			}
		}
	}
	for i := range b.properties {
		c := &b.properties[i]
		f, ok := v[c.name]
		if !ok {
			continue
		}
		if !c.evaluate(e, location{parent: at, kind: atChild, name: c.name}, f, old[c.name], l.property(c.name)) {
			return false
		}
	}
	return true
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// evaluateRules runs the rules of b itself on v, which is not null.
func (b *branch) evaluateRules(e *evaluation, at *location, v, old any, l lineage) bool {
	compiled, err := b.compiled()
	if err != nil {
		e.invalid(at, b.node, fmt.Sprintf("rule compiler initialization error: %v", err))
		return true
	}
	if e.over() || !e.affordable(at, b.node) {
		return false
	}
	vars := newActivations(b, compiled, v, old, e.done)
	for i := range compiled.rules {
		if !b.evaluateRule(e, at, &compiled.rules[i], &vars, v, old, l) {
			return false
		}
	}
	return true
}

func (b *branch) evaluateRule(
	e *evaluation, at *location, r *compiledRule, vars *activations, v, old any, l lineage,
) bool {
	switch {
	case r.err != nil:
		e.invalid(at, b.node, "rule compile error: "+r.err.Error())
		return true
	case r.condition == nil:
		return true
	case r.condition.usesOldSelf && old == nil && !r.optional():
		return true // transition rules need an old value
	}
	activation := &vars.plain
	if r.optional() {
		activation = &vars.optional
	}
	out, err := e.evaluate(r.condition, activation)
	if stop, ok := err.(*stopError); ok {
		return e.stop(at, b.node, r.rule, stop)
	}
	if err != nil && e.over() {
		return false // an interrupted loop
	}
	if err != nil {
		text := err.Error()
		if strings.HasPrefix(text, "no such overload") {
			// Only values of dynamic types get here; the type checker finds all others.
			text = fmt.Sprintf(
				"'%v': call arguments did not match a supported operator, function or macro signature for rule: %v",
				text, ruleText(r.rule))
		} else {
			text = fmt.Sprintf("%v evaluating rule: %v", text, ruleText(r.rule))
		}
		e.invalid(at, b.node, text)
		return true
	}
	if out == types.True {
		return true
	}
	// As in Kubernetes, oldSelf is never optional in the message, whatever the rule uses; such messages fall back.
	return b.failed(e, at, r, &vars.plain, v, l)
}

// failed reports that a rule evaluated to false.
func (b *branch) failed(e *evaluation, at *location, r *compiledRule, vars *activation, v any, l lineage) bool {
	path := at.path()
	if r.fieldPath != "" {
		path = path.Child(r.fieldPath)
	}
	report := func(err *field.Error) {
		if !r.condition.usesOldSelf && l.unchanged() {
			if e.warn != nil {
				e.warnings = append(e.warnings, err)
			}
			return
		}
		e.errs = append(e.errs, err)
	}
	detail, err := "", error(nil)
	if r.message != nil {
		detail, err = e.message(r.message, vars)
		if stop, ok := err.(*stopError); ok {
			if stop.reason == stopUncertain {
				return e.stop(at, b.node, r.rule, stop)
			}
			e.budget = -1
			report(field.Invalid(path, b.node.Type, stop.text))
			return false
		}
	}
	if detail == "" {
		detail = messageOf(r.rule)
	}
	if b.node.Type == "object" || b.node.Type == "array" {
		v = field.OmitValueType{}
	}
	report(reasoned(path, v, detail, r.rule.Reason))
	return true
}

// invalid reports a failure of the evaluation itself. Its bad value is the type, as in kube.
func (e *evaluation) invalid(at *location, n *schema.Node, detail string) {
	e.errs = append(e.errs, field.Invalid(at.path(), n.Type, detail))
}

// reasoned returns the error type for a rule's reason.
func reasoned(path *field.Path, v any, detail string, reason *apiextensionsv1.FieldValueErrorReason) *field.Error {
	if reason != nil {
		switch *reason {
		case apiextensionsv1.FieldValueForbidden:
			return field.Forbidden(path, detail)
		case apiextensionsv1.FieldValueRequired:
			return field.Required(path, detail)
		case apiextensionsv1.FieldValueDuplicate:
			return field.Duplicate(path, v)
		}
	}
	return field.Invalid(path, v, detail)
}

// messageOf returns a rule's message, or its default.
func messageOf(r *apiextensionsv1.ValidationRule) string {
	if r.Message == "" {
		return "failed rule: " + ruleText(r)
	}
	return strings.TrimSpace(r.Message)
}

// ruleText names a rule in messages about its evaluation.
func ruleText(r *apiextensionsv1.ValidationRule) string {
	if r.Message != "" {
		return strings.TrimSpace(r.Message)
	}
	return strings.TrimSpace(r.Rule)
}
