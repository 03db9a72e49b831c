package certificates

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// TestProvenKeySurvivesWebhooks changes a request in each version as a webhook does: fields that the version lacks keep
// their values.
func TestProvenKeySurvivesWebhooks(t *testing.T) {
	t.Parallel()
	resource := podCertificateRequestKind().Resource()
	version := func(name string) *catalog.Version {
		return resource.Versions[slices.IndexFunc(resource.Versions,
			func(v *catalog.Version) bool { return v.Name == name })]
	}
	sent := object.Object{"spec": map[string]any{
		"signerName": "a.example.com/b", "pkixPublicKey": "a2V5", "proofOfPossession": "cHJvb2Y=",
	}}
	for _, c := range []struct {
		of, seen string
		fields   []string
	}{
		{"v1beta1", "v1beta1", []string{"pkixPublicKey", "proofOfPossession", "signerName"}},
		{"v1beta1", "v1", []string{"signerName"}},
		{"v1", "v1beta1", []string{"signerName"}},
	} {
		obj := runtime.DeepCopyJSON(sent)
		if err := resource.Convert(version("v1beta1"), version(c.of), obj); err != nil {
			t.Fatal(err)
		}
		a := &admit.Attributes{
			Target: admit.Target{Resource: resource, Version: version(c.of)}, Object: obj,
			Forms: admit.Forms{Convert: func(
				_ context.Context, obj object.Object, from, to *catalog.Version,
			) (object.Object, error) {
				out := runtime.DeepCopyJSON(obj)
				return out, resource.Convert(from, to, out)
			}},
		}
		seen, _, err := a.In(t.Context(), version(c.seen))
		if err != nil {
			t.Fatal(err)
		}
		changed := runtime.DeepCopyJSON(seen)
		spec := changed["spec"].(map[string]any)
		if got := slices.Sorted(maps.Keys(spec)); !slices.Equal(got, c.fields) {
			t.Errorf("%s in %s has the fields %q, want %q", c.of, c.seen, got, c.fields)
		}
		spec["signerName"] = "c.example.com/d"
		back, err := a.Back(t.Context(), version(c.seen), changed)
		if err != nil {
			t.Fatal(err)
		}
		want := runtime.DeepCopyJSON(obj)
		want["spec"].(map[string]any)["signerName"] = "c.example.com/d"
		if !reflect.DeepEqual(back, want) {
			t.Errorf("%s changed in %s is %v, want %v", c.of, c.seen, back, want)
		}
	}
}
