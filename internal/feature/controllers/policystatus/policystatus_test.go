package policystatus_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
)

var policies = schema.GroupVersionResource{
	Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies",
}

// TestPolicyTypes checks that the status of a policy has the type errors of its expressions, for built-in and custom
// kinds, and again after a change of its spec.
func TestPolicyTypes(t *testing.T) {
	c := controltest.Start(t)
	c.Create(controltest.Definitions, controltest.Definition("crontabs", "CronTab", "Namespaced"))
	policy := controltest.Object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "typed")
	policy.Object["spec"] = map[string]any{
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"apiGroups": []any{"apps", "stable.example.com"}, "apiVersions": []any{"v1"}, "operations": []any{"*"},
			"resources": []any{"deployments", "crontabs"},
		}}},
		"validations": []any{map[string]any{"expression": "object.spec.replicsa > 1"},
			map[string]any{"expression": "object.metadata.name != ''"}},
	}
	c.Create(policies, policy)
	observed := func(generation int64) (p *unstructured.Unstructured) {
		c.When(policies, "", fmt.Sprintf("generation %d is observed", generation),
			func(all map[string]*unstructured.Unstructured) bool {
				if p = all["typed"]; p == nil {
					return false
				}
				n, _, _ := unstructured.NestedInt64(p.Object, "status", "observedGeneration")
				return n == generation
			})
		return p
	}
	p := observed(1)
	warnings, _, _ := unstructured.NestedSlice(p.Object, "status", "typeChecking", "expressionWarnings")
	if len(warnings) != 1 {
		t.Fatalf("%d warnings: %v", len(warnings), p.Object["status"])
	}
	w := warnings[0].(map[string]any)
	text, _ := w["warning"].(string)
	const want = "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replicsa'\n | object.spec.replicsa > 1\n | ...........^\n"
	if w["fieldRef"] != "spec.validations[0].expression" || !strings.HasPrefix(text, want) ||
		!strings.Contains(text, "stable.example.com/v1, Kind=CronTab: ERROR") {
		t.Errorf("warning %v", w)
	}
	managed := p.GetManagedFields()
	if len(managed) != 2 || managed[0].Manager != "validatingadmissionpolicy-status" ||
		managed[0].Operation != "Apply" || managed[0].Subresource != "status" {
		t.Errorf("managed fields %v", managed)
	}

	patch := []byte(`[{"op":"remove","path":"/spec/validations/0"}]`)
	if _, err := c.In(policies, "").Patch(t.Context(), "typed", types.JSONPatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if p = observed(2); strings.Contains(fmt.Sprint(p.Object["status"]), "expressionWarnings") {
		t.Errorf("status %v", p.Object["status"])
	}
}
