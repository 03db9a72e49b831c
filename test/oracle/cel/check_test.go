package cel

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

// compareCheck checks a schema on both sides. It returns the errors, equal on both.
func compareCheck(t *testing.T, name string, props *apiextensionsv1.JSONSchemaProps) []string {
	t.Helper()
	up, err := newUpstream(props)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	our, err := schema.Compile(props, schema.Options{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	errs, path := up.check()
	theirs, ours := describe(errs), describe(cel.Check(our.Root(), path, cel.CheckOptions{}))
	if !slices.Equal(ours, theirs) {
		t.Errorf("%s:\nours     %q\nupstream %q", name, ours, theirs)
	}
	return ours
}

// TestRealDefinitions checks the rules of all definitions of the collection. Of upjet's every ORACLE_STEP-th (20th).
func TestRealDefinitions(t *testing.T) {
	var definitions, rejected int
	check := func(d *apiextensionsv1.CustomResourceDefinition) {
		for _, v := range d.Spec.Versions {
			definitions++
			if len(compareCheck(t, d.Name+" "+v.Name, v.Schema.OpenAPIV3Schema)) > 0 {
				rejected++
			}
		}
	}
	for _, d := range fixture.Definitions(t) {
		check(d)
	}
	fixture.UpjetDefinitions(t, fixture.Setting("ORACLE_STEP", 20),
		func(_ string, d *apiextensionsv1.CustomResourceDefinition) bool { check(d); return true })
	t.Logf("%d schemas, %d with errors", definitions, rejected)
}
