package resource

import (
	"strings"
	"testing"

	resourcev1beta1 "k8s.io/api/resource/v1beta1"

	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// TestOlderForms decodes objects stored by Kubernetes 1.32 and 1.33, as protobuf and as JSON. test/oracle-builtins
// compares random objects with kube-apiserver.
func TestOlderForms(t *testing.T) {
	t.Parallel()
	storing := convert.NewStoring(Kinds(), convert.StoringOptions{})
	for _, test := range []struct {
		prefix, kind string
		into         any
		spec, want   string // the spec in v1beta1 and in v1
	}{
		{"resourceclaims", "ResourceClaim", new(resourcev1beta1.ResourceClaim),
			`{"devices":{"requests":[{"name":"a","deviceClassName":"gpu","allocationMode":"ExactCount","count":2,"tolerations":[{"key":"k","operator":"Exists"}]},{"name":"b","deviceClassName":"","firstAvailable":[{"name":"c","deviceClassName":"gpu","count":3}]}]}}`,
			`{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":2,"deviceClassName":"gpu","tolerations":[{"key":"k","operator":"Exists"}]},"name":"a"},{"firstAvailable":[{"count":3,"deviceClassName":"gpu","name":"c"}],"name":"b"}]}}`},
		{"resourceclaimtemplates", "ResourceClaimTemplate", new(resourcev1beta1.ResourceClaimTemplate),
			`{"metadata":{},"spec":{"devices":{"requests":[{"name":"a","deviceClassName":"","adminAccess":true}]}}}`,
			`{"metadata":{},"spec":{"devices":{"requests":[{"exactly":{"adminAccess":true,"deviceClassName":""},"name":"a"}]}}}`},
		{"resourceslices", "ResourceSlice", new(resourcev1beta1.ResourceSlice),
			`{"driver":"d","pool":{"name":"p","generation":1,"resourceSliceCount":1},"nodeName":"n","devices":[{"name":"a","basic":{"attributes":{"x":{"int":1}},"allowMultipleAllocations":true}},{"name":"b","basic":{}}]}`,
			`{"devices":[{"allowMultipleAllocations":true,"attributes":{"x":{"int":1}},"name":"a"},{"name":"b"}],"driver":"d","nodeName":"n","pool":{"generation":1,"name":"p","resourceSliceCount":1}}`},
		{"deviceclasses", "DeviceClass", new(resourcev1beta1.DeviceClass),
			`{"selectors":[{"cel":{"expression":"true"}}]}`, `{"selectors":[{"cel":{"expression":"true"}}]}`},
	} {
		doc := `{"apiVersion":"resource.k8s.io/v1beta1","kind":"` + test.kind + `","metadata":{"name":"x"},"spec":` + test.spec + `}`
		stored, err := codec.ToProtobuf([]byte(doc), test.into)
		if err != nil {
			t.Fatal(err)
		}
		for form, value := range map[string][]byte{"JSON": []byte(doc), "protobuf": stored} {
			decoded, err := storing.Decode(test.prefix, value)
			got := decoded.JSON
			if err != nil || !strings.Contains(string(got), `"spec":`+test.want) ||
				!strings.HasPrefix(string(got), `{"apiVersion":"resource.k8s.io/v1","kind":`) {
				t.Errorf("%s in %s: %s (%v)\nwant %s", test.kind, form, got, err, test.want)
			}
		}
	}
}
