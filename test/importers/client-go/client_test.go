package clientgo

import (
	"context"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// start starts a server and returns its client configuration, and a context with a timeout.
func start(t *testing.T) (context.Context, *rest.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	server := testserver.Start(t, func(c *bowsprit.Config) { c.ShutdownTimeout = time.Minute })
	return ctx, server.RESTConfig()
}

// TestDynamicClient creates a definition and objects of its kind.
func TestDynamicClient(t *testing.T) {
	ctx, config := start(t)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	if _, err := definitions.Create(ctx, shirtDefinition(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "shirts"}
	shirts := client.Resource(resource).Namespace("default")
	if _, err := shirts.Create(ctx, shirt("bad", "mauve"), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a shirt that breaks the rule: got %v, want Invalid", err)
	}
	made, err := shirts.Create(ctx, shirt("good", "blue"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if size, _, _ := unstructured.NestedString(made.Object, "spec", "size"); size != "M" {
		t.Errorf("spec.size is %q, want the default M", size)
	}

	watcher, err := shirts.Watch(ctx, metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	red := shirt("good", "red")
	if _, err := shirts.Apply(ctx, "good", red, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
		t.Fatal(err)
	}
	event := <-watcher.ResultChan()
	seen, _ := event.Object.(*unstructured.Unstructured)
	if event.Type != watch.Modified || seen == nil || seen.Object["spec"].(map[string]any)["color"] != "red" {
		t.Errorf("after the apply the watch has %s %v", event.Type, event.Object)
	}
}

// TestTypedClient uses objects of a built-in kind, in both encodings that clients of built-in kinds may choose.
func TestTypedClient(t *testing.T) {
	for _, encoding := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(encoding, func(t *testing.T) {
			ctx, config := start(t)
			config.ContentType = encoding
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			maps := client.CoreV1().ConfigMaps("default")
			want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Data: map[string]string{"a": "1"}}
			if _, err := maps.Create(ctx, want, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			change := applyv1.ConfigMap("m", "default").WithData(map[string]string{"b": "2"})
			if _, err := maps.Apply(ctx, change, metav1.ApplyOptions{FieldManager: "test"}); err != nil {
				t.Fatal(err)
			}
			got, err := maps.Get(ctx, "m", metav1.GetOptions{})
			if err != nil || got.Data["a"] != "1" || got.Data["b"] != "2" {
				t.Errorf("got %v, error %v; want both keys", got.Data, err)
			}
			pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
			if err != nil || len(pods.Items) != 0 {
				t.Errorf("a fresh server has pods %v, error %v", pods.Items, err)
			}
		})
	}
}

// TestPolicy creates a policy that calls the server's authorizer, through the interfaces of the CEL library.
func TestPolicy(t *testing.T) {
	ctx, config := start(t)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	admission := client.AdmissionregistrationV1()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{
						APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{
				{Expression: "authorizer.requestResource.check('create').allowed()", Message: "may not create"},
				{Expression: "!authorizer.path('/metrics').check('get').allowed()", Message: "sees metrics"},
			},
		},
	}
	if _, err := admission.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "p", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	if _, err := admission.ValidatingAdmissionPolicyBindings().Create(ctx, binding,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	denied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	_, err = client.CoreV1().ConfigMaps("default").Create(ctx, denied, metav1.CreateOptions{})
	const want = `configmaps "m" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: sees metrics`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func shirt(name, color string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Shirt",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"color": color},
	}}
}

func shirtDefinition() *unstructured.Unstructured {
	spec := map[string]any{
		"type": "object",
		"properties": map[string]any{
			"color": map[string]any{"type": "string"},
			"size":  map[string]any{"type": "string", "default": "M"},
		},
		"x-kubernetes-validations": []any{map[string]any{"rule": "self.color in ['red', 'blue']"}},
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "shirts.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "shirts", "singular": "shirt", "kind": "Shirt"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": spec},
				}},
			}},
		},
	}}
}
