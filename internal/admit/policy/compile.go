package policy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/expr"
	"github.com/bowsprit/bowsprit/internal/admit/match"
	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// decode decodes a stored object with the current defaults. It returns false for an invalid object, written by other
// means, which is then ignored.
func decode(e *watchcache.Entry, defaults func(map[string]any), into any) bool {
	v, err := codec.DecodeJSON(e.JSON())
	obj, ok := v.(map[string]any)
	if err != nil || !ok {
		return false
	}
	defaults(obj)
	return runtime.DefaultUnstructuredConverter.FromUnstructured(obj, into) == nil
}

// criteria are compiled matchConstraints or matchResources, or why they could not be.
type criteria struct {
	*match.Criteria
	err error
}

// target returns the form of a write for the policy; ok is false if the criteria do not match.
func (c *criteria) target(ctx context.Context, a *admit.Attributes, config *Config) (match.Target, bool, error) {
	if c.err != nil {
		return match.Target{}, false, c.err
	}
	return c.Match(ctx, a, config)
}

func compileCriteria(m *admissionregistrationv1.MatchResources) criteria {
	c, err := match.Resources(m)
	return criteria{c, err}
}

// binding is a binding of either kind. actions is nil for mutating policies.
type binding struct {
	name, policy string
	params       *admissionregistrationv1.ParamRef
	match        criteria
	actions      []admissionregistrationv1.ValidationAction
}

// validating is a ValidatingAdmissionPolicy. Its expressions are compiled when they are first needed.
type validating struct {
	name    string
	spec    *admissionregistrationv1.ValidatingAdmissionPolicySpec
	match   criteria
	program func() *validatingProgram
}

type validatingProgram struct {
	conditions, validations, annotations []*expr.Expression
	messages                             []*expr.Expression // of the validations, nil if none has one
	namespace                            bool               // needs namespaceObject
}

func newValidating(e *watchcache.Entry) (*validating, bool) {
	var p admissionregistrationv1.ValidatingAdmissionPolicy
	if !decode(e, registration.DefaultPolicy, &p) {
		return nil, false
	}
	v := &validating{name: p.Name, spec: &p.Spec, match: policyCriteria(p.Spec.MatchConstraints)}
	v.program = sync.OnceValue(func() *validatingProgram { return compileValidating(v.spec) })
	return v, true
}

func compileValidating(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) *validatingProgram {
	scope := expr.Scope{Params: spec.ParamKind != nil, Authorizer: true}
	c, namespace := compileVariables(spec.Variables, scope)
	p := &validatingProgram{conditions: compileConditions(c, spec.MatchConditions, scope)}
	for _, v := range spec.Validations {
		p.validations = append(p.validations, c.Compile(v.Expression, scope, expr.Stored, expr.Bool))
	}
	for i, v := range spec.Validations {
		if v.MessageExpression == "" {
			continue
		}
		if p.messages == nil {
			p.messages = make([]*expr.Expression, len(spec.Validations))
		}
		p.messages[i] = c.Compile(v.MessageExpression, expr.Scope{Params: scope.Params}, expr.Stored, expr.String)
	}
	for _, a := range spec.AuditAnnotations {
		p.annotations = append(p.annotations, c.Compile(a.ValueExpression, scope, expr.Stored, expr.String, expr.Null))
	}
	p.namespace = namespace || usesNamespace(p.validations) || usesNamespace(p.messages) || usesNamespace(p.annotations)
	return p
}

// compileVariables returns a compiler with the variables, and whether one of them uses namespaceObject. Expressions
// that use a variable with a compile error fail.
func compileVariables(list []admissionregistrationv1.Variable, scope expr.Scope) (c *expr.Compiler, namespace bool) {
	if len(list) == 0 {
		return &expr.Compiler{}, false
	}
	c = expr.Composed()
	for _, v := range list {
		namespace = c.Variable(v.Name, v.Expression, scope, expr.Stored).Namespace || namespace
	}
	return c, namespace
}

func compileConditions(
	c *expr.Compiler, list []admissionregistrationv1.MatchCondition, scope expr.Scope,
) (out []*expr.Expression) {
	for _, m := range list {
		out = append(out, c.Compile(m.Expression, scope, expr.Stored, expr.Bool))
	}
	return out
}

func usesNamespace(list []*expr.Expression) bool {
	return slices.ContainsFunc(list, func(e *expr.Expression) bool { return e != nil && e.Namespace })
}

func newValidatingBinding(e *watchcache.Entry) (*binding, bool) {
	var b admissionregistrationv1.ValidatingAdmissionPolicyBinding
	if !decode(e, registration.DefaultBinding, &b) {
		return nil, false
	}
	return &binding{
		name: b.Name, policy: b.Spec.PolicyName, params: b.Spec.ParamRef, match: compileCriteria(b.Spec.MatchResources),
		actions: b.Spec.ValidationActions,
	}, true
}

// bound is a policy with its bindings.
type bound[P any] struct {
	policy   P
	bindings []*binding
}

// bind returns the policies that have bindings, both in the order of their names. Metrics of others are dropped.
func bind[P any](c *Config, mutating bool, policies []P, name func(P) string, bindings []*binding) []bound[P] {
	by, names, bindingNames := map[string][]*binding{}, map[string]bool{}, map[string]bool{}
	for _, b := range bindings {
		by[b.policy] = append(by[b.policy], b)
		bindingNames[b.name] = true
	}
	for _, p := range policies {
		names[name(p)] = true
	}
	c.Metrics.KeepPolicies(mutating, names, bindingNames)
	var out []bound[P]
	for _, p := range policies {
		if list := by[name(p)]; len(list) > 0 {
			out = append(out, bound[P]{p, list})
		}
	}
	slices.SortStableFunc(out, func(x, y bound[P]) int { return strings.Compare(name(x.policy), name(y.policy)) })
	return out
}

// policyCriteria compiles the matchConstraints of a policy, which are required.
func policyCriteria(m *admissionregistrationv1.MatchResources) criteria {
	if m == nil {
		return criteria{err: errors.New("policy contained no match constraints, a required field")}
	}
	return compileCriteria(m)
}
