package policy_test

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/testserver"
)

// TestSafeUpgrades installs the policy that protects the Gateway API's definitions. Its file is outside of the
// repository.
func TestSafeUpgrades(t *testing.T) {
	content, err := os.ReadFile("../../../../shared/crds/real/gateway.networking.k8s.io_vap_safeupgrades.yaml")
	if err != nil {
		t.Skip(err)
	}
	client := dynamic.NewForConfigOrDie(testserver.Start(t).RESTConfig())
	create := func(group, version, resource string, obj map[string]any) error {
		r := schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
		_, err := client.Resource(r).Create(t.Context(), &unstructured.Unstructured{Object: obj},
			metav1.CreateOptions{FieldValidation: "Strict"})
		return err
	}
	for i, document := range strings.Split(string(content), "\n---\n") {
		var obj map[string]any
		if err := yaml.Unmarshal([]byte(document), &obj); err != nil {
			t.Fatal(err)
		}
		resource := []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}[i]
		if err := create("admissionregistration.k8s.io", "v1", resource, obj); err != nil {
			t.Fatal(err)
		}
	}
	definition := func(plural, group, channel, bundle string) map[string]any {
		return map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": plural + "." + group, "annotations": map[string]any{
				"gateway.networking.k8s.io/channel": channel, "gateway.networking.k8s.io/bundle-version": bundle,
				"api-approved.kubernetes.io": "unapproved, a test",
			}},
			"spec": map[string]any{
				"group": group, "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": plural},
				"versions": []any{
					map[string]any{
						"name": "v1", "served": true, "storage": true,
						"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
					},
				},
			},
		}
	}
	const prefix = "ValidatingAdmissionPolicy 'safe-upgrades.gateway.networking.k8s.io' with binding 'safe-upgrades.gateway.networking.k8s.io' denied request: "
	refused := func(desc string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), prefix+want) {
			t.Errorf("%s: %v", desc, err)
		}
	}
	definitions := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	for desc, err := range map[string]error{
		"another group": create("apiextensions.k8s.io", "v1", definitions.Resource,
			definition("things", "example.com", "experimental", "v0.1.0")),
		"a new release": create("apiextensions.k8s.io", "v1", definitions.Resource,
			definition("gateways", "gateway.networking.k8s.io", "standard", "v1.5.1")),
	} {
		if err != nil {
			t.Errorf("%s: %v", desc, err)
		}
	}
	refused("an old release",
		create("apiextensions.k8s.io", "v1", definitions.Resource,
			definition("routes", "gateway.networking.k8s.io", "standard", "v0.8.0")),
		"Installing CRDs with version before v1.5.0 is prohibited by default.")

	gateways, err := client.Resource(definitions).Get(t.Context(), "gateways.gateway.networking.k8s.io",
		metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	annotations := gateways.GetAnnotations()
	annotations["gateway.networking.k8s.io/channel"] = "experimental"
	gateways.SetAnnotations(annotations)
	_, err = client.Resource(definitions).Update(t.Context(), gateways, metav1.UpdateOptions{})
	refused("experimental over standard", err,
		"Installing experimental CRDs on top of standard channel CRDs is prohibited by default.")
}
