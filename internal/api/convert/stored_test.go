package convert

import (
	"bytes"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// TestDecode decodes values that kube-apiserver may have stored, and this server under other settings.
func TestDecode(t *testing.T) {
	t.Parallel()
	newest := &catalog.Version{Name: "v2", New: func() any { return &autoscalingv2.HorizontalPodAutoscaler{} }}
	older := &catalog.Version{Name: "v1", New: func() any { return &autoscalingv1.HorizontalPodAutoscaler{} }}
	policy := &catalog.Version{
		Name: "v1", New: func() any { return &admissionregistrationv1.MutatingAdmissionPolicy{} },
	}
	rename := func(from, to string) func([]byte) ([]byte, error) {
		return func(raw []byte) ([]byte, error) { return bytes.Replace(raw, []byte(from), []byte(to), 1), nil }
	}
	storing := NewStoring([]*catalog.Resource{
		{Prefix: "horizontalpodautoscalers", Versions: []*catalog.Version{newest, older}, Storage: newest},
		{
			Prefix: "policies", Versions: []*catalog.Version{policy}, Storage: policy,
			Form: &catalog.Form{Decode: rename("v1beta1", "v1")},
		},
		{Virtual: true, Prefix: "", Form: &catalog.Form{}},
	}, StoringOptions{})
	protobuf := func(doc string, into any) string {
		out, err := codec.ToProtobuf([]byte(doc), into)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	const v1 = `{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"a"},"spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":50}}`
	const v2 = `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"a"},"spec":{"maxReplicas":3,"metrics":[{"type":"Resource"}]}}`
	const beta = `{"apiVersion":"admissionregistration.k8s.io/v1beta1","kind":"MutatingAdmissionPolicy","metadata":{"name":"a"},"spec":{"failurePolicy":"Ignore"}}`
	boxed, err := codec.ToCBOR([]byte(`{"a":[1,"x"],"metadata":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, prefix, stored, want string }{
		{"JSON of any kind", "example.com/things", `{"metadata":{}}`, `{"metadata":{}}`},
		{"CBOR of any kind", "example.com/things", string(boxed), `{"a":[1,"x"],"metadata":{}}`},
		{"protobuf in the version that is stored here", "horizontalpodautoscalers",
			protobuf(v2, &autoscalingv2.HorizontalPodAutoscaler{}), `"metrics":[{"type":"Resource"}]`},
		{"protobuf in another version", "horizontalpodautoscalers",
			protobuf(v1, &autoscalingv1.HorizontalPodAutoscaler{}), `"targetCPUUtilizationPercentage":50`},
		{"protobuf of a version that is not served", "policies",
			protobuf(beta, &admissionregistrationv1.MutatingAdmissionPolicy{}),
			`"apiVersion":"admissionregistration.k8s.io/v1"`},
		{"YAML of a built-in kind", "horizontalpodautoscalers",
			"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata:\n  name: a\nspec:\n  maxReplicas: 3\n",
			`"spec":{"maxReplicas":3}`},
		{"a form of its own", "policies", beta + "\n", `"apiVersion":"admissionregistration.k8s.io/v1"`},
	} {
		decoded, err := storing.Decode(c.prefix, []byte(c.stored))
		got := decoded.JSON
		if err != nil || !strings.Contains(string(got), c.want) || got[0] != '{' {
			t.Errorf("%s: %v %s", c.name, err, got)
		}
	}
	for name, broken := range map[string]string{
		"envelope": "k8s\x00\xff",
		"message":  string(codec.Enclose("autoscaling/v2", "HorizontalPodAutoscaler", []byte("\xff"))),
		"CBOR":     "\xd9\xd9\xf7\xff",
		"YAML":     "apiVersion: [",
	} {
		if got, err := storing.Decode("horizontalpodautoscalers", []byte(broken)); err == nil {
			t.Errorf("broken %s: %s", name, got.JSON)
		}
	}
	// A custom kind has no Go type.
	got, err := storing.Decode("example.com/things", []byte("k8s\x00"))
	if err != nil || string(got.JSON) != "k8s\x00" {
		t.Errorf("protobuf of a custom kind: %v %s", err, got.JSON)
	}
}
