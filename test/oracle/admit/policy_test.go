package admit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/bowsprit/bowsprit/internal/admit/policy"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
)

// compile makes Kubernetes' evaluator of a policy, as its plugin does.
func compile(t testing.TB, p *admissionregistrationv1.ValidatingAdmissionPolicy) validating.Validator {
	t.Helper()
	c, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	all := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range p.Spec.Variables {
		c.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, all,
			environment.StoredExpressions)
	}
	var conditions, validations, messages, annotations []cel.ExpressionAccessor
	for i := range p.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	for _, v := range p.Spec.Validations {
		validations = append(validations,
			&validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		var m cel.ExpressionAccessor
		if v.MessageExpression != "" {
			m = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
		messages = append(messages, m)
	}
	for _, a := range p.Spec.AuditAnnotations {
		annotations = append(annotations,
			&validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression})
	}
	var matcher matchconditions.Matcher
	if len(conditions) > 0 {
		matcher = matchconditions.NewMatcher(c.CompileCondition(conditions, all, environment.StoredExpressions),
			p.Spec.FailurePolicy, "policy", "validate", p.Name)
	}
	return validating.NewValidator(c.CompileCondition(validations, all, environment.StoredExpressions), matcher,
		c.CompileCondition(annotations, all, environment.StoredExpressions),
		c.CompileCondition(messages, cel.OptionalVariableDeclarations{}, environment.StoredExpressions),
		p.Spec.FailurePolicy, nil)
}

func TestValidatingPolicies(t *testing.T) {
	rounds, writes := 60, 40
	if testing.Short() {
		rounds = 10
	}
	matcher := generic.NewPolicyMatcher(namespaceMatcher())
	upstream := validating.NewDispatcher(authorizerfactory.NewPrivilegedGroups("system:masters"), matcher)
	denied := 0
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		objects := map[string]any{}
		var hooks []validating.PolicyHook
		for i := range 1 + r.IntN(3) {
			p := randomPolicy(r, fmt.Sprintf("p%d", i))
			objects["validatingadmissionpolicies/"+p.Name] = p
			hook := validating.PolicyHook{Policy: p, Evaluator: compile(t, p)}
			for j := range 1 + r.IntN(2) {
				b := randomBinding(r, fmt.Sprintf("b%d%d", i, j), p.Name)
				objects["validatingadmissionpolicybindings/"+b.Name] = b
				hook.Bindings = append(hook.Bindings, b)
			}
			hooks = append(hooks, hook)
		}
		counters, metrics := count(t)
		config := policy.Config{
			View: view(t, objects), Catalog: catalog.New(resources()...), Authz: authz.Union{}, Metrics: metrics,
		}
		ours := policy.NewValidating(config, nil)
		for range writes {
			w := randomWrite(r)
			got := w.ask(config.Catalog, ours.Validate)
			want := w.callUpstream(func(ctx context.Context, a admission.Attributes,
				o admission.ObjectInterfaces) error {
				return upstream.Dispatch(ctx, a, o, hooks)
			})
			if want.Status != nil {
				denied++
			}
			if g, u := got.String(), want.String(); g != u {
				t.Fatalf("seed %d, %+v:\nours %s\nKubernetes' %s", seed, w, g, u)
			}
		}
		counters.compare(t, seed)
	}
	if denied < rounds*writes/20 {
		t.Errorf("only %d of %d writes were denied", denied, rounds*writes)
	}
}
