package policy

import (
	"context"
	"errors"
	"slices"
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

func (v *validating) policyName() string { return v.name }

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
	return validatingOf(&p), true
}

func validatingOf(p *admissionregistrationv1.ValidatingAdmissionPolicy) *validating {
	v := &validating{name: p.Name, spec: &p.Spec, match: policyCriteria(p.Spec.MatchConstraints)}
	v.program = sync.OnceValue(func() *validatingProgram { return compileValidating(v.spec) })
	return v
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
	return validatingBindingOf(&b), true
}

func validatingBindingOf(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) *binding {
	return &binding{
		name: b.Name, policy: b.Spec.PolicyName, params: b.Spec.ParamRef, match: compileCriteria(b.Spec.MatchResources),
		actions: b.Spec.ValidationActions,
	}
}

// policyCriteria compiles the matchConstraints of a policy, which are required.
func policyCriteria(m *admissionregistrationv1.MatchResources) criteria {
	if m == nil {
		return criteria{err: errors.New("policy contained no match constraints, a required field")}
	}
	return compileCriteria(m)
}
