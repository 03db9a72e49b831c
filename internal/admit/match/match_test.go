package match_test

import (
	"context"
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/match"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// namespaces maps names to labels; a missing name does not exist, and "broken" cannot be read.
type namespaces map[string]labels.Set

func (n namespaces) Labels(_ context.Context, name string) (labels.Set, error) {
	if set, ok := n[name]; ok {
		return set, nil
	}
	if name == "broken" {
		return nil, errors.New("broken")
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
}

var (
	v1      = &catalog.Version{Name: "v1", Served: true}
	v2      = &catalog.Version{Name: "v2", Served: true}
	widgets = &catalog.Resource{Group: "example.com", Plural: "widgets", Kind: "Widget", Namespaced: true,
		Versions: []*catalog.Version{v2, v1}, Storage: v2}
	everywhere = namespaces{"a": {"env": "prod"}, "b": {"env": "test"}}
)

func write(op admit.Operation, v *catalog.Version, namespace string) *admit.Attributes {
	return &admit.Attributes{
		Operation: op,
		Target: admit.Target{
			Resource: widgets, Version: v, Namespace: namespace, Name: "x",
			Kind: schema.GroupVersionKind{Group: "example.com", Version: v.Name, Kind: "Widget"},
		},
		Object: map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "new"}}},
		Old:    map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "old"}}},
	}
}

// TestMatch checks which writes the matchResources of a policy match, and the version of their objects.
func TestMatch(t *testing.T) {
	t.Parallel()
	const rules = `resourceRules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [widgets]}]`
	for _, c := range []struct {
		name, resources string
		a               *admit.Attributes
		want            string // the matched version, "" for no match
	}{
		{"the version of the rule", rules, write(admit.Create, v1, "a"), "v1"},
		{"another version", rules, write(admit.Create, v2, "a"), ""},
		{"an equivalent version", "matchPolicy: Equivalent\n" + rules, write(admit.Create, v2, "a"), "v1"},
		{"another operation", rules, write(admit.Update, v1, "a"), ""},
		{"without rules", "{}", write(admit.Update, v2, "a"), "v2"},
		{"an exclusion", rules + "\n" + "exclude" +
			`ResourceRules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"]}]`,
			write(admit.Create, v1, "a"), ""},
		{"a name",
			`resourceRules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], resourceNames: [y]}]`,
			write(admit.Create, v1, "a"), ""},
		{"a subresource only",
			`resourceRules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["widgets/status"]}]`,
			write(admit.Create, v1, "a"), ""},
		{"labels of the namespace", rules + "\nnamespaceSelector: {matchLabels: {env: prod}}",
			write(admit.Create, v1, "a"), "v1"},
		{"other labels of the namespace", rules + "\nnamespaceSelector: {matchLabels: {env: prod}}",
			write(admit.Create, v1, "b"), ""},
		{"labels of the new object", rules + "\nobjectSelector: {matchLabels: {app: new}}",
			write(admit.Create, v1, "a"), "v1"},
		{"labels of the old object", rules + "\nobjectSelector: {matchLabels: {app: old}}",
			write(admit.Create, v1, "a"), "v1"},
		{"labels of neither", rules + "\nobjectSelector: {matchLabels: {app: other}}", write(admit.Create, v1, "a"),
			""},
	} {
		m := &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		}
		if err := yaml.UnmarshalStrict([]byte(c.resources), m); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		criteria, err := match.Resources(m)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		target, ok, err := criteria.Match(t.Context(), c.a, everywhere)
		got := ""
		if ok {
			got = target.Version.Name
		}
		if err != nil || got != c.want {
			t.Errorf("%s: seen as %q, want %q, error %v", c.name, got, c.want, err)
		}
	}
}

// TestMatchErrors checks that an error in a selector counts only if everything else matches.
func TestMatchErrors(t *testing.T) {
	t.Parallel()
	any := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{"CREATE"},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"},
		},
	}}
	prod := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	wrong := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Wrong"}}}
	for _, c := range []struct {
		name      string
		criteria  *match.Criteria
		a         *admit.Attributes
		ok, fails bool
		notFound  bool
	}{
		{"a namespace that is gone", match.Webhook(any, nil, prod, &metav1.LabelSelector{}),
			write(admit.Create, v1, "gone"), false, true, true},
		{"a namespace that cannot be read", match.Webhook(any, nil, prod, &metav1.LabelSelector{}),
			write(admit.Create, v1, "broken"), false, true, false},
		{"a wrong selector", match.Webhook(any, nil, &metav1.LabelSelector{}, wrong), write(admit.Create, v1, "a"),
			false,
			true, false},
		{"a wrong selector of a write that no rule is about", match.Webhook(any, nil, &metav1.LabelSelector{}, wrong),
			write(admit.Delete, v1, "a"), false, false, false},
		{"a webhook without rules", match.Webhook(nil, nil, &metav1.LabelSelector{}, &metav1.LabelSelector{}),
			write(admit.Create, v1, "a"), false, false, false},
	} {
		_, ok, err := c.criteria.Match(t.Context(), c.a, everywhere)
		if ok != c.ok || (err != nil) != c.fails || apierrors.IsNotFound(err) != c.notFound {
			t.Errorf("%s: %t, %v", c.name, ok, err)
		}
	}
	if _, err := match.Resources(&admissionregistrationv1.MatchResources{}); err == nil {
		t.Error("selectors that are not there are accepted")
	}
}

// TestExempt checks that the configuration of admission does not apply to itself.
func TestExempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r                       *catalog.Resource
		policies, all, webhooks bool
	}{
		{widgets, false, false, false},
		{&catalog.Resource{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}, true, false,
			true},
		{&catalog.Resource{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}, false, false,
			true},
		{&catalog.Resource{Group: "authentication.k8s.io", Kind: "TokenReview", Virtual: true}, false, true, false},
		{&catalog.Resource{Group: "example.com", Kind: "ValidatingAdmissionPolicy"}, false, false, false},
	} {
		p, all, w := match.ExemptFromPolicies(c.r), match.IsReview(c.r), match.ExemptFromWebhooks(c.r)
		if p != c.policies || all != c.all || w != c.webhooks {
			t.Errorf("%s %s: stored policies %t, all policies %t, webhooks %t", c.r.Group, c.r.Kind, p, all, w)
		}
	}
}
