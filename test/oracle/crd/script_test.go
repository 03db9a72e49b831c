package crd

import (
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestScript compares the expectations in the test script of internal/api/crd with upstream.
func TestScript(t *testing.T) {
	raw, err := os.ReadFile("../../../internal/api/crd/testdata/validate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type change struct {
		Spec, Version map[string]any
		Schema        any
	}
	var script struct {
		Base  map[string]any
		Cases []struct {
			Name          string
			Spec, Version map[string]any
			Schema        any
			Old           *change
			Want          []string
		}
	}
	if err := yaml.Unmarshal(raw, &script); err != nil {
		t.Fatal(err)
	}
	definition := func(c change) *apiextensionsv1.CustomResourceDefinition {
		obj := cloneJSON(script.Base).(map[string]any)
		spec := obj["spec"].(map[string]any)
		version := spec["versions"].([]any)[0].(map[string]any)
		if c.Schema != nil {
			version["schema"] = map[string]any{"openAPIV3Schema": c.Schema}
		}
		for k, v := range c.Version {
			version[k] = v
		}
		for k, v := range c.Spec {
			spec[k] = v
		}
		def, _, err := decodeUpstream(mustJSON(obj))
		if err != nil {
			t.Fatal(err)
		}
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(def)
		return def
	}
	for _, c := range script.Cases {
		t.Run(c.Name, func(t *testing.T) {
			var old *apiextensionsv1.CustomResourceDefinition
			if c.Old != nil {
				old = definition(*c.Old)
			}
			errs, panicked := validateUpstream(definition(change{c.Spec, c.Version, c.Schema}), old)
			if panicked != nil {
				t.Fatal(panicked)
			}
			got, want := map[string]int{}, map[string]int{}
			for _, e := range errs {
				got[e.Error()]++
			}
			for _, text := range c.Want {
				want[text]++
			}
			if d := difference(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
