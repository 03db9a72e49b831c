package admit_test

import (
	"fmt"
	"math/rand/v2"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func some[T any](r *rand.Rand, from ...T) []T {
	out := make([]T, 1+r.IntN(2))
	for i := range out {
		out[i] = pick(r, from...)
	}
	return out
}

func randomRule(r *rand.Rand) admissionregistrationv1.RuleWithOperations {
	rule := admissionregistrationv1.RuleWithOperations{
		Operations: some[admissionregistrationv1.OperationType](r, "*", "*", "CREATE", "UPDATE", "DELETE"),
		Rule: admissionregistrationv1.Rule{
			APIGroups: some(r, "*", group, group, "other"), APIVersions: some(r, "*", "v1", "v2"),
			Resources: some(r, "*", "*/*", "widgets", "gadgets", "widgets/status", "*/status", "widgets/*"),
		},
	}
	if r.IntN(3) == 0 {
		rule.Scope = ptr.To(pick(r, admissionregistrationv1.AllScopes, admissionregistrationv1.ClusterScope,
			admissionregistrationv1.NamespacedScope))
	}
	return rule
}

func randomNamedRules(r *rand.Rand, n int) (out []admissionregistrationv1.NamedRuleWithOperations) {
	for range n {
		rule := admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: randomRule(r)}
		if r.IntN(4) == 0 {
			rule.ResourceNames = some(r, "a", "b")
		}
		out = append(out, rule)
	}
	return out
}

func randomSelector(r *rand.Rand) *metav1.LabelSelector {
	switch r.IntN(6) {
	case 0:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"color": pick(r, "red", "blue")}}
	case 1:
		return &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "color", Operator: pick(r, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)},
			},
		}
	}
	return &metav1.LabelSelector{}
}

func randomMatch(r *rand.Rand, rules int) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{
		MatchPolicy:       ptr.To(pick(r, admissionregistrationv1.Exact, admissionregistrationv1.Equivalent)),
		NamespaceSelector: randomSelector(r), ObjectSelector: randomSelector(r),
		ResourceRules: randomNamedRules(r, rules), ExcludeResourceRules: randomNamedRules(r, max(0, r.IntN(4)-2)),
	}
}

func randomFailure(r *rand.Rand) *admissionregistrationv1.FailurePolicyType {
	return ptr.To(pick(r, admissionregistrationv1.Fail, admissionregistrationv1.Ignore))
}

func randomConditions(r *rand.Rand, authorizer bool) (out []admissionregistrationv1.MatchCondition) {
	from := []string{
		"true", "request.operation != 'DELETE'", "object == null || object.spec.replicas > 1",
		"oldObject.spec.replicas < 3",
		"request.kind.version == 'v1'", "request.resource.version == request.requestResource.version",
		"request.userInfo.username == 'me' && 'crew' in request.userInfo.groups",
		"has(request.options.fieldManager)", "namespaceObject == null",
	}
	if authorizer {
		from = append(from, "authorizer.requestResource.check('create').allowed()",
			"authorizer.group('').resource('pods').namespace('x').check('get').allowed()")
	}
	for i := range max(0, r.IntN(5)-2) {
		out = append(out,
			admissionregistrationv1.MatchCondition{Name: fmt.Sprintf("c%d", i), Expression: pick(r, from...)})
	}
	return out
}

func randomPolicy(r *rand.Rand, name string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	p := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.FailurePolicy = randomFailure(r)
	p.Spec.MatchConstraints = randomMatch(r, 1+r.IntN(2))
	p.Spec.MatchConditions = randomConditions(r, true)
	p.Spec.Variables = []admissionregistrationv1.Variable{
		{Name: "n", Expression: pick(r, "object.spec.replicas", "object == null ? 0 : object.spec.replicas", "1 / 0")},
		{Name: "list", Expression: "[variables.n, 1]"},
	}
	for range 1 + r.IntN(2) {
		v := admissionregistrationv1.Validation{
			Expression: pick(r, "true", "false", "variables.n < 3", "variables.list.all(e, e < 4)",
				"object.metadata.name != 'b'", "has(object.nothing.at.all)",
				"request.name == 'a' || request.name == ''", "request.dryRun == false", "request.subResource == ''",
				"namespaceObject.metadata.labels.color == 'red'",
				"!has(oldObject.spec) || oldObject.spec.replicas == object.spec.replicas",
				"authorizer.requestResource.check('update').allowed()",
				"string(request.options.kind) == 'CreateOptions'"),
			Message: pick(r, "", "no", " spaces "),
			MessageExpression: pick(r, "", "", "'replicas: ' + string(variables.n)", "'a\\nb'", "object.nothing",
				"'  '"),
		}
		if r.IntN(3) == 0 {
			v.Reason = ptr.To(pick(r, metav1.StatusReasonForbidden, metav1.StatusReasonRequestEntityTooLarge,
				metav1.StatusReasonInvalid))
		}
		p.Spec.Validations = append(p.Spec.Validations, v)
	}
	for i := range max(0, r.IntN(4)-2) {
		p.Spec.AuditAnnotations = append(p.Spec.AuditAnnotations, admissionregistrationv1.AuditAnnotation{
			Key:             fmt.Sprintf("k%d", i),
			ValueExpression: pick(r, "'v'", "null", "string(variables.n)", "' '", "request.operation"),
		})
	}
	return p
}

func randomBinding(r *rand.Rand, name, policy string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.PolicyName = policy
	b.Spec.ValidationActions = pick(r, []admissionregistrationv1.ValidationAction{"Deny"},
		[]admissionregistrationv1.ValidationAction{"Warn", "Audit"},
		[]admissionregistrationv1.ValidationAction{"Deny", "Audit"})
	if r.IntN(2) == 0 {
		b.Spec.MatchResources = randomMatch(r, r.IntN(2))
	}
	return b
}
