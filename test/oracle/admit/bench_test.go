package admit_test

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/utils/ptr"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/policy"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
)

// BenchmarkValidatingPolicy measures the cost of one policy for a write that it allows.
func BenchmarkValidatingPolicy(b *testing.B) {
	for _, test := range []struct{ name, expression string }{
		{"no-op", "true"}, {"one field", "object.spec.replicas <= 5"},
		{"a list", "object.spec.list.all(e, e.size() < 10)"},
	} {
		everything := &metav1.LabelSelector{}
		p := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(admissionregistrationv1.Fail),
				MatchConstraints: &admissionregistrationv1.MatchResources{
					MatchPolicy: ptr.To(admissionregistrationv1.Equivalent), NamespaceSelector: everything,
					ObjectSelector: everything,
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
						RuleWithOperations: admissionregistrationv1.RuleWithOperations{
							Operations: []admissionregistrationv1.OperationType{"CREATE"},
							Rule: admissionregistrationv1.Rule{
								APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{"widgets"},
							},
						},
					}},
				},
				Validations: []admissionregistrationv1.Validation{{Expression: test.expression}},
			}}
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        "p",
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			}}
		object := map[string]any{"apiVersion": group + "/v1", "kind": "Widget",
			"metadata": map[string]any{"name": "w", "namespace": "red", "labels": map[string]any{"a": "b"}},
			"spec":     map[string]any{"replicas": int64(3), "list": []any{"a", "b", "c"}}}
		b.Run(test.name+"/impl=Bowsprit", func(b *testing.B) {
			config := policy.Config{Catalog: catalog.New(resources()...), Authz: authz.Union{},
				View: view(b,
					map[string]any{"validatingadmissionpolicies/p": p, "validatingadmissionpolicybindings/b": binding})}
			plugin := policy.NewValidating(config, nil)
			res, ver := config.Catalog.Snapshot().Served(group, "v1", "widgets")
			b.ReportAllocs()
			for b.Loop() {
				a := &admit.Attributes{
					Operation: admit.Create,
					Target: admit.Target{
						Resource: res, Version: ver, Namespace: "red", Name: "w",
						Kind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"},
					},
					Request: admit.Request{User: me, Warn: func(string) {}},
					Object:  object,
				}
				if err := plugin.Validate(b.Context(), a); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(test.name+"/impl=Kubernetes", func(b *testing.B) {
			matcher := generic.NewPolicyMatcher(namespaceMatcher())
			plugin := validating.NewDispatcher(authorizerfactory.NewPrivilegedGroups("system:masters"), matcher)
			hooks := []validating.PolicyHook{
				{
					Policy: p, Evaluator: compile(b, p),
					Bindings: []*admissionregistrationv1.ValidatingAdmissionPolicyBinding{binding},
				},
			}
			known := interfaces{unstructuredscheme.NewUnstructuredObjectTyper()}
			obj := &unstructured.Unstructured{Object: object}
			b.ReportAllocs()
			for b.Loop() {
				a := admission.NewAttributesRecord(obj, nil,
					schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"}, "red", "w",
					schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}, "", admission.Create,
					&metav1.CreateOptions{}, false, me)
				if err := plugin.Dispatch(context.Background(), a, known, hooks); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
