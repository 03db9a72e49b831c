package control_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
)

var betaDefinitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1beta1", Resource: "customresourcedefinitions",
}

// betaDefinition is a definition from before v1: common parts at the top, and a schema that is not structural.
const betaDefinition = `
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
spec:
  group: stable.example.com
  version: v1
  names: {plural: crontabs, kind: CronTab}
  additionalPrinterColumns:
  - {name: Spec, type: string, JSONPath: .spec.cronSpec}
  subresources: {status: {}}
  validation:
    openAPIV3Schema:
      properties:
        spec:
          properties:
            cronSpec: {type: string, maxLength: 3}
`

func TestBetaDefinition(t *testing.T) {
	c := start(t)
	beta := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(betaDefinition), &beta.Object); err != nil {
		t.Fatal(err)
	}
	made := c.Create(betaDefinitions, beta)
	at := func(obj *unstructured.Unstructured, path ...string) any {
		v, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
		return v
	}
	if at(made, "spec", "preserveUnknownFields") != true || at(made, "spec", "scope") != "Namespaced" ||
		at(made, "spec", "names", "listKind") != "CronTabList" ||
		at(made, "spec", "conversion", "strategy") != "None" || len(at(made, "spec", "versions").([]any)) != 1 ||
		at(made, "apiVersion") != "apiextensions.k8s.io/v1beta1" {
		t.Errorf("made: %v", made.Object["spec"])
	}
	v1, err := c.In(controltest.Definitions, "").Get(t.Context(), beta.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	version := at(v1, "spec", "versions").([]any)[0].(map[string]any)
	column, _ := version["additionalPrinterColumns"].([]any)
	if at(v1, "spec", "version") != nil || at(v1, "spec", "validation") != nil || len(column) != 1 ||
		column[0].(map[string]any)["jsonPath"] != ".spec.cronSpec" ||
		version["schema"] == nil || version["subresources"] == nil {
		t.Errorf("in v1: %v", v1.Object["spec"])
	}
	var violations string
	conditions, _, _ := unstructured.NestedSlice(v1.Object, "status", "conditions")
	for _, entry := range conditions {
		if condition := entry.(map[string]any); condition["type"] == "NonStructuralSchema" {
			violations = condition["message"].(string)
		}
	}
	if !strings.Contains(violations, "spec.preserveUnknownFields: Invalid value: true: must be false") {
		t.Errorf("NonStructuralSchema: %q", violations)
	}
	again, err := c.In(betaDefinitions, "").Get(t.Context(), beta.GetName(), metav1.GetOptions{})
	if err != nil || at(again, "spec", "validation") == nil || at(again, "spec", "version") != "v1" {
		t.Errorf("read again: %v, %v", again, err)
	}

	tab := controltest.Object("stable.example.com/v1", "CronTab", "default", "tab")
	tab.Object["spec"] = map[string]any{"cronSpec": "* *", "unknown": "kept"}
	if got := c.Create(controltest.Crontabs, tab); at(got, "spec", "unknown") != "kept" {
		t.Errorf("unknown fields are kept: %v", got.Object)
	}
	tab.SetName("wrong")
	tab.Object["spec"] = map[string]any{"cronSpec": "too long"}
	if _, err := c.In(controltest.Crontabs, "default").Create(t.Context(), tab, metav1.CreateOptions{}); err == nil ||
		!strings.Contains(err.Error(), "spec.cronSpec: Too long: may not be more than 3 bytes") {
		t.Errorf("validation: %v", err)
	}

	patch := []byte(
		`{"spec":{"validation":{"openAPIV3Schema":{"properties":{"spec":{"properties":{"cronSpec":{"maxLength":10}}}}}}}}`)
	if _, err := c.In(betaDefinitions, "").Patch(t.Context(), beta.GetName(), "application/merge-patch+json", patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Create(controltest.Crontabs, tab)
	// Parts that v1 does not allow survive a change through v1, and cannot be added through it.
	if _, err := c.In(controltest.Definitions, "").Patch(t.Context(), beta.GetName(), "application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("a label through v1: %v", err)
	}
	c.Delete(betaDefinitions, beta, "")
	c.Until(controltest.Definitions, "", "")
}
