package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// many returns n pieces of JSON with a comma between; # in a piece is its number.
func many(n int, piece string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(piece, "#", fmt.Sprint(i)))
	}
	return b.String()
}

// TestStrategicMergeWork checks how long the lists of a strategic merge patch may be. The library merges the refused
// ones in between ten seconds and hours.
func TestStrategicMergeWork(t *testing.T) {
	t.Parallel()
	const finalizer, owner, variable = `"a.b/c#"`, `{"kind":"Pod","name":"a","uid":"#"}`, `{"name":"A#","value":"b"}`
	meta := func(field, list string) string { return `{"metadata":{"` + field + `":[` + list + `]}}` }
	pod := func(field, list string) string {
		return `{"spec":{"template":{"spec":{"containers":[{"name":"x"},{"name":"c","` + field + `":[` + list + `]}]}}}}`
	}
	for name, c := range map[string]struct {
		original, patch string
		field           string // of the error, "" without
	}{
		"finalizers":        {meta("finalizers", many(3000, finalizer)), meta("finalizers", many(3000, finalizer)), ""},
		"owners":            {meta("ownerReferences", many(900, owner)), meta("ownerReferences", many(900, owner)), ""},
		"variables":         {pod("env", many(1000, variable)), pod("env", many(1000, variable)), ""},
		"a new list":        {`{}`, meta("ownerReferences", many(20_000, owner)), ""},
		"a replaced list":   {pod("args", many(20_000, `"#"`)), pod("args", many(20_000, `"#"`)), ""},
		"a replaced object": {pod("env", many(9000, variable)), `{"$patch":"replace"}`, ""},
		"another container": {pod("env", many(9000, variable)),
			`{"spec":{"template":{"spec":{"containers":[{"name":"y","env":[` + many(9000, variable) + `]}]}}}}`, ""},

		"too many finalizers": {
			meta("finalizers", many(9000, finalizer)), meta("finalizers", many(9000, finalizer)), "metadata.finalizers",
		},
		"one more finalizer": {meta("finalizers", many(9000, finalizer)), meta("finalizers", finalizer),
			"metadata.finalizers"},
		"too many owners": {meta("ownerReferences", owner), meta("ownerReferences", many(4000, owner)),
			"metadata.ownerReferences"},
		"too many variables": {pod("env", many(4000, variable)), pod("env", many(4000, variable)),
			"spec.template.spec.containers[1].env"},
		"too long an order": {meta("finalizers", many(9000, finalizer)),
			`{"metadata":{"$setElementOrder/finalizers":[` + many(9000, finalizer) + `]}}`, "metadata.finalizers"},
		"too long an order of a new list": {`{"metadata":{}}`,
			`{"metadata":{"$setElementOrder/ownerReferences":[` + many(4000, owner) + `],"ownerReferences":[` +
				many(4000, owner) + `]}}`, "metadata.ownerReferences"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			original, patch := decode(t, c.original).(map[string]any), decode(t, c.patch).(map[string]any)
			if c.field == "" {
				of, err := strategicpatch.NewPatchMetaFromStruct(appsv1.Deployment{})
				if err != nil {
					t.Fatal(err)
				}
				if err := checkMerging(original, patch, of); err != nil {
					t.Error(err)
				}
				return
			}
			_, err := StrategicMerge(original, patch, appsv1.Deployment{})
			status := (*apierrors.StatusError)(nil)
			if !apierrors.IsInvalid(err) || !errors.As(err, &status) || len(status.ErrStatus.Details.Causes) != 1 ||
				status.ErrStatus.Details.Causes[0].Field != c.field {
				t.Errorf("got %v, want a 422 about %s", err, c.field)
			}
		})
	}
	// The merge itself still works.
	original, patch := decode(t, `{"secrets":[{"name":"a"}]}`), decode(t, `{"secrets":[{"name":"b"}]}`)
	got, err := StrategicMerge(original.(map[string]any), patch.(map[string]any), corev1.ServiceAccount{})
	if err != nil || len(got["secrets"].([]any)) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestJSONPatchWork inserts and removes elements at both ends of a list while little may still be moved.
func TestJSONPatchWork(t *testing.T) {
	t.Parallel()
	const length = 1000
	for op, refused := range map[string]bool{
		`{"op":"add","path":"/a/-","value":1}`:       false,
		`{"op":"add","path":"/a/990","value":1}`:     false,
		`{"op":"remove","path":"/a/-1"}`:             false,
		`{"op":"replace","path":"/a/0","value":1}`:   false,
		`{"op":"test","path":"/a/0","value":1}`:      false,
		`{"op":"add","path":"/a/0","value":1}`:       true,
		`{"op":"remove","path":"/a/0"}`:              true,
		`{"op":"move","from":"/a/0","path":"/a/-"}`:  true,
		`{"op":"move","from":"/a/-1","path":"/a/0"}`: true,
		`{"op":"copy","from":"/a/-1","path":"/a/0"}`: true,
	} {
		p := patching{root: decode(t, `{"a":[`+many(length, "1")+`]}`), moved: maxMoved - length/2}
		operations, err := jsonpatch.DecodePatch([]byte("[" + op + "]"))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.do(operations[0]); errors.Is(err, errMoved) != refused || err != nil && !refused {
			t.Errorf("%s: %v", op, err)
		}
	}
	obj := decode(t, `{"a":[`+many(100_000, "1")+`]}`).(map[string]any)
	_, err := JSONPatch(t.Context(), obj, []byte(`[`+many(maxOperations, `{"op":"add","path":"/a/0","value":1}`)+`]`))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "patch: Invalid value: error in add for path: '/a/0'") {
		t.Errorf("10,000 insertions before 100,000 elements: %v", err)
	}
}
