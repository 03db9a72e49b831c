package decode

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestCheckPatch has the texts of kube-apiserver 1.37.2.
func TestCheckPatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		patch types.PatchType
		body  string
		want  string
	}{
		{types.MergePatchType, `{"a":1}`, ""},
		{types.MergePatchType, ``, "invalid JSON patch"},
		{types.StrategicMergePatchType, `{"a":`, "invalid JSON patch"},
		{types.JSONPatchType, `[{]`, "invalid JSON patch"},
		{types.JSONPatchType, `a: 1`, "invalid JSON patch"},
		{types.ApplyYAMLPatchType, `a: 1`, ""},
		{types.ApplyYAMLPatchType, `{"a":1}`, ""},
		{types.ApplyYAMLPatchType, `a: b: c`, "error encoding patch: yaml: mapping values are not allowed in this context"},
		{types.ApplyCBORPatchType, "\xa0", ""},
		{types.ApplyCBORPatchType, "\xff", `error decoding patch: cbor: unexpected "break" code`},
	} {
		got := ""
		if err := (Patch{Type: test.patch, Data: []byte(test.body)}).Check(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s %q: %q, want %q", test.patch, test.body, got, test.want)
		}
	}
}
