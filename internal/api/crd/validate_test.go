package crd

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

var updateWant = flag.Bool("update", false, "write what the tests get into testdata")

// TestValidate runs testdata/validate.yaml.
func TestValidate(t *testing.T) {
	const file = "testdata/validate.yaml"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := fromYAML(t, string(raw))
	v := NewValidator()
	for _, c := range all["cases"].([]any) {
		c := c.(map[string]any)
		t.Run(c["name"].(string), func(t *testing.T) {
			def := caseDefinition(t, all["base"].(map[string]any), c)
			var errs field.ErrorList
			if old, ok := c["old"].(map[string]any); ok {
				errs = v.ValidateUpdate(def, caseDefinition(t, all["base"].(map[string]any), old))
			} else {
				errs = v.Validate(def)
			}
			got := []any{}
			for _, e := range errs {
				got = append(got, e.Error())
			}
			want, _ := c["want"].([]any)
			if *updateWant {
				c["want"] = got
			} else if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
	if *updateWant {
		writeWants(t, file, raw, all["cases"].([]any))
	}
}

// caseDefinition returns the definition of a case.
func caseDefinition(t *testing.T, base, c map[string]any) *apiextensionsv1.CustomResourceDefinition {
	obj := clone(base).(map[string]any)
	spec := obj["spec"].(map[string]any)
	version := spec["versions"].([]any)[0].(map[string]any)
	if s, ok := c["schema"]; ok {
		version["schema"] = map[string]any{"openAPIV3Schema": s}
	}
	for at, from := range map[*map[string]any]any{&version: c["version"], &spec: c["spec"]} {
		fields, _ := from.(map[string]any)
		for k, v := range fields {
			(*at)[k] = v
		}
	}
	def := mustDecode(t, clone(obj).(map[string]any))
	SetDefaults(def)
	return def
}

// writeWants replaces the lists "want" of the cases and leaves the rest of the file unchanged.
func writeWants(t *testing.T, file string, raw []byte, cases []any) {
	var out bytes.Buffer
	next, skipping := -1, false
	flush := func() {
		if next < 0 || next >= len(cases) {
			return
		}
		text, err := yaml.Marshal(map[string]any{"want": cases[next].(map[string]any)["want"]})
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			out.WriteString("  ")
			out.Write(line)
		}
	}
	for line := range bytes.Lines(raw) {
		switch {
		case bytes.HasPrefix(line, []byte("- name:")), bytes.HasPrefix(line, []byte("base:")):
			flush()
			next, skipping = next+1, false
		case bytes.HasPrefix(line, []byte("  want:")):
			skipping = true
		}
		if !skipping {
			out.Write(line)
		}
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
