package crd

import (
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// TestBetaNeedsNoApproval checks that definitions of v1beta1 in Kubernetes' own groups need no approval annotation, as
// in the versions of Kubernetes that served v1beta1. In v1 they do, unless they lacked it before.
func TestBetaNeedsNoApproval(t *testing.T) {
	beta := func() catalog.Object {
		return catalog.Object{
			"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
			"metadata": catalog.Object{"name": "tabs.scheduling.k8s.io"},
			"spec": catalog.Object{
				"group": "scheduling.k8s.io", "version": "v1", "scope": "Namespaced",
				"names": catalog.Object{"plural": "tabs", "kind": "Tab"},
			},
		}
	}
	rules := Rules()
	of := BetaRules(rules)
	made := func(t *testing.T) catalog.Object {
		obj := beta()
		if _, err := of.Decode(obj); err != nil {
			t.Fatal(err)
		}
		of.Default(obj)
		of.PrepareCreate(obj, catalog.Env{})
		return obj
	}
	obj := made(t)
	if errs := of.Validate(t.Context(), obj); len(errs) > 0 {
		t.Errorf("a new definition of v1beta1: %v", errs)
	}
	if errs := of.ValidateUpdate(t.Context(), made(t), obj, ""); len(errs) > 0 {
		t.Errorf("an updated definition of v1beta1: %v", errs)
	}
	v1 := asV1(obj)
	if errs := rules.ValidateUpdate(t.Context(), asV1(obj), v1, ""); len(errs) > 0 {
		t.Errorf("an update in v1 that leaves the annotation alone: %v", errs)
	}
	errs := rules.Validate(t.Context(), v1)
	if !strings.Contains(errs.ToAggregate().Error(), "api-approved.kubernetes.io") {
		t.Errorf("a new definition of v1: %v", errs)
	}
}

// TestEmptyKeywordsAreNotStored checks that keywords kept for validation are removed before the definition is stored.
func TestEmptyKeywordsAreNotStored(t *testing.T) {
	rules := Rules()
	obj := fromYAML(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tabs.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: tabs, kind: Tab}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, allOf: [], properties: {definitions: {type: object, definitions: {}}}}}
`)
	if _, err := rules.Decode(obj); err != nil {
		t.Fatal(err)
	}
	rules.Default(obj)
	rules.PrepareCreate(obj, catalog.Env{})
	if errs := rules.Validate(t.Context(), obj); len(errs) > 0 {
		t.Fatal(errs)
	}
	text := string(encode(t, obj))
	if !strings.Contains(text, `"allOf":[]`) || !strings.Contains(text, `"definitions":{}`) {
		t.Fatalf("validation does not see %s", text)
	}
	rules.Store(obj)
	const want = `{"openAPIV3Schema":{"properties":{"definitions":{"type":"object"}},"type":"object"}}`
	if text = string(encode(t, obj)); !strings.Contains(text, want) {
		t.Errorf("stored is %s", text)
	}
}
