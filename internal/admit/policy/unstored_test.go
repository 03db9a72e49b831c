package policy_test

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/testserver"
)

// TestUnstored checks that policies apply to bindings, connections and tokens, though nothing of them is stored, and to
// events of either group, but not to reviews, even if they match everything.
func TestUnstored(t *testing.T) {
	t.Parallel()
	config := testserver.Start(t).RESTConfig()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, pods := t.Context(), client.CoreV1().Pods("default")
	if _, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	rule := func(operations, groups, resources string) map[string]any {
		return map[string]any{
			"operations": []any{operations}, "apiGroups": []any{groups}, "apiVersions": []any{"*"},
			"resources": []any{resources},
		}
	}
	policies := dynamic.NewForConfigOrDie(config)
	create := func(resource, kind, name string, spec map[string]any) {
		t.Helper()
		_, err := policies.Resource(schema.GroupVersionResource{
			Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource,
		}).Create(ctx,
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": name},
				"spec": spec,
			}}, metav1.CreateOptions{FieldValidation: "Strict"})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		rules      []any
		expression string
	}{
		"connections": {[]any{rule("CONNECT", "*", "*/*")},
			"'has asked for ' + object.command[0] + ' ' + string(request.options == null)"},
		"bindings": {[]any{rule("CREATE", "", "bindings"), rule("CREATE", "", "pods/binding")},
			"request.resource.resource + ' ' + request.name + ' to ' + object.target.name"},
		"events": {[]any{rule("CREATE", "", "events")},
			"object.message + ' about ' + object.involvedObject.name + ' through ' + request.requestKind.group"},
		"reviews": {[]any{rule("*", "authentication.k8s.io", "*"), rule("*", "authorization.k8s.io", "*")},
			"'reviewed'"},
	} {
		create("validatingadmissionpolicies", "ValidatingAdmissionPolicy", name, map[string]any{
			"matchConstraints": map[string]any{"resourceRules": test.rules},
			"validations":      []any{map[string]any{"expression": "false", "messageExpression": test.expression}},
		})
		create("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", name,
			map[string]any{"policyName": name, "validationActions": []any{"Deny"}})
	}
	create("mutatingadmissionpolicies", "MutatingAdmissionPolicy", "m", map[string]any{
		"matchConstraints":   map[string]any{"resourceRules": []any{rule("CREATE", "", "events")}},
		"reinvocationPolicy": "Never",
		"mutations": []any{map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
			"expression": "Object{message: 'good ' + object.message}",
		}}},
	})
	create("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", "m", map[string]any{"policyName": "m"})
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "one"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"},
	}
	post := func() error {
		return client.CoreV1().RESTClient().Post().Namespace(
			"default").Resource("bindings").Body(binding).Do(ctx).Error()
	}
	_, event := client.EventsV1().Events("default").Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e"}, EventTime: metav1.NowMicro(), ReportingController: "example.com/c",
		ReportingInstance: "i", Action: "A",
		Reason: "R", Type: "Normal", Note: "news",
		Regarding: corev1.ObjectReference{Kind: "Pod", Name: "one", Namespace: "default"},
	}, metav1.CreateOptions{})
	_, reviewErr := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	_, token := client.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "x"}}, metav1.CreateOptions{})
	_, rules := client.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx,
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}},
		metav1.CreateOptions{})
	for _, test := range []struct {
		desc string
		err  error
		want string // "" if it is allowed
	}{
		{"exec",
			client.CoreV1().RESTClient().Post().Namespace(
				"default").Resource("pods").Name("one").SubResource("exec").Param("command", "ls").Do(ctx).Error(),
			"has asked for ls true"},
		{"bindings", post(), "bindings one to n"},
		{"pods/binding", pods.Bind(ctx, binding, metav1.CreateOptions{}), "pods one to n"},
		{"event", event, "good news about one through events.k8s.io"},
		{"selfsubjectreviews", reviewErr, ""},
		{"tokenreviews", token, ""},
		{"selfsubjectrulesreviews", rules, ""},
	} {
		if test.want == "" && test.err != nil || test.want != "" &&
			(test.err == nil || !strings.HasSuffix(test.err.Error(), "denied request: "+test.want)) {
			t.Errorf("%s: %v, want %q", test.desc, test.err, test.want)
		}
	}
}
