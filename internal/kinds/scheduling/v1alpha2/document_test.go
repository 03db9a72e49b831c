package v1alpha2

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// TestDocuments brings objects into the protobuf documents that clients of Kubernetes send and get, and back.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		new func() any
		doc string
	}{
		{func() any { return &PodGroup{} }, `{"apiVersion":"scheduling.k8s.io/v1alpha2","kind":"PodGroup",` +
			`"metadata":{"name":"g","namespace":"n"},"spec":{"disruptionMode":"Pod","podGroupTemplateRef":{"workload":` +
			`{"podGroupTemplateName":"t","workloadName":"w"}},"priority":-7,"schedulingPolicy":{"gang":{"minCount":3}}},` +
			`"status":{"conditions":[{"lastTransitionTime":null,"message":"","reason":"Scheduled","status":"True",` +
			`"type":"PodGroupScheduled"}]}}`},
		{func() any { return &Workload{} }, `{"apiVersion":"scheduling.k8s.io/v1alpha2","kind":"Workload",` +
			`"metadata":{"name":"w"},"spec":{"controllerRef":{"kind":"Job","name":"j"},"podGroupTemplates":[` +
			`{"name":"t","schedulingConstraints":{"topology":[{"key":"rack"}]},"schedulingPolicy":{"basic":{}}}]}}`},
	} {
		message, err := codec.ToProtobuf([]byte(c.doc), c.new())
		if err != nil {
			t.Fatalf("%T: %v", c.new(), err)
		}
		if got, err := codec.FromProtobuf(message, c.new()); err != nil || string(got) != c.doc {
			t.Errorf("%T:\n%s, %v, want\n%s", c.new(), got, err, c.doc)
		}
	}
}
