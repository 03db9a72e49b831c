package apiserverinternal

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

func TestStorageVersionName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"apps.deployments": "", "events.k8s.io.events": "",
		"deployments": "name must be in the form",
		"A.pods":      "the group segment a lowercase RFC 1123 subdomain",
		"apps.1x":     "the resource segment a DNS-1035 label",
	} {
		got := strings.Join(storageVersionName(name, false), "; ")
		if got == "" != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestStorageVersionStatus checks the consistency rules of servers' entries; test/oracle-builtins compares the texts
// with Kubernetes'.
func TestStorageVersionStatus(t *testing.T) {
	t.Parallel()
	k := Kinds()[0]
	for _, test := range []struct{ status, want string }{
		{`{}`, ""},
		{`{"commonEncodingVersion":"v1","storageVersions":[{"apiServerID":"a","encodingVersion":"v1","decodableVersions":["v1","g/v2"],"servedVersions":["g/v2"]}]}`,
			""},
		{`{"storageVersions":[{"apiServerID":"a","encodingVersion":"v1","decodableVersions":["v1"]},{"apiServerID":"b","encodingVersion":"v2","decodableVersions":["v2"]}]}`,
			""},
		{`{"commonEncodingVersion":"v1"}`, "status.commonEncodingVersion: Invalid"},
		{`{"storageVersions":[{"apiServerID":"a","encodingVersion":"v1","decodableVersions":["v1"]}]}`,
			"status.commonEncodingVersion: Invalid"},
		{`{"commonEncodingVersion":"v1","storageVersions":[{"apiServerID":"A","encodingVersion":"v1","decodableVersions":["v2","a/b/c"],"servedVersions":["v3"]}]}`,
			"status.storageVersions[0].apiServerID: Invalid status.storageVersions[0].decodableVersions[1]: Invalid " +
				"status.storageVersions[0].decodableVersions: Invalid status.storageVersions[0].servedVersions[0]: Invalid"},
		{`{"conditions":[{"type":"A","status":"True","reason":"","message":""},{"type":"A","status":"True","reason":"R","message":"m"}]}`,
			"status[0].reason: Required status[0].message: Required status[1].type: Invalid"},
	} {
		v, err := codec.DecodeJSON([]byte(`{"metadata":{"name":"apps.deployments"},"spec":{},"status":` + test.status + `}`))
		if err != nil {
			t.Fatal(err)
		}
		obj := v.(object.Object)
		if got := short(k.Strategy.ValidateUpdate(t.Context(), obj, obj, "status")); got != test.want {
			t.Errorf("%s: %s, want %s", test.status, got, test.want)
		}
		if got := short(k.Strategy.ValidateUpdate(t.Context(), obj, obj, "")); got != "" {
			t.Errorf("%s: in an update of the object: %s", test.status, got)
		}
	}
}

// short returns paths and the first words of errors.
func short(errs field.ErrorList) string {
	out := make([]string, len(errs))
	for i, e := range errs {
		out[i] = e.Field + ": " + strings.TrimPrefix(string(e.Type), "FieldValue")
	}
	return strings.Join(out, " ")
}
