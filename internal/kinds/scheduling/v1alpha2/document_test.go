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
		{func() any { return &PodGroup{} }, `{"kind":"PodGroup","apiVersion":"scheduling.k8s.io/v1alpha2",` +
			`"metadata":{"name":"g","namespace":"n"},"spec":{"podGroupTemplateRef":{"workload":{"workloadName":"w",` +
			`"podGroupTemplateName":"t"}},"schedulingPolicy":{"gang":{"minCount":3}},"disruptionMode":"Pod",` +
			`"priority":-7},"status":{"conditions":[{"type":"PodGroupScheduled","status":"True",` +
			`"lastTransitionTime":null,"reason":"Scheduled","message":""}]}}`},
		{func() any { return &Workload{} }, `{"kind":"Workload","apiVersion":"scheduling.k8s.io/v1alpha2",` +
			`"metadata":{"name":"w"},"spec":{"controllerRef":{"kind":"Job","name":"j"},"podGroupTemplates":[` +
			`{"name":"t","schedulingPolicy":{"basic":{}},"schedulingConstraints":{"topology":[{"key":"rack"}]}}]}}`},
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
