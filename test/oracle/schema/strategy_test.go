package schema

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestStrategy compares with upstream's complete create, update and status strategies, on resources with a scale
// subresource and valid metadata: the errors, their sources and their order.
func TestStrategy(t *testing.T) {
	selector := ".status.selector"
	scale := &apiextensionsv1.CustomResourceSubresourceScale{
		SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas", LabelSelectorPath: &selector,
	}
	kind := runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	for i := range fixture.Setting("ORACLE_STRATEGY", 300) {
		g := &generator{Rand: rand.New(rand.NewPCG(11, uint64(i)))}
		g.wild = g.IntN(10)
		props := g.root()
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			delete(props.Properties, name)
		}
		up, err := newUpstream(props, false)
		if err != nil {
			t.Fatal(err)
		}
		our, err := schema.Compile(props, schema.Options{Scale: scale})
		if err != nil {
			t.Fatal(err)
		}
		internal := &apiextensions.CustomResourceSubresourceScale{
			SpecReplicasPath: scale.SpecReplicasPath, StatusReplicasPath: scale.StatusReplicasPath,
			LabelSelectorPath: scale.LabelSelectorPath,
		}
		strategy := customresource.NewStrategy(runtime.NewScheme(), false, kind, up.validator, up.status, up.structural,
			&apiextensions.CustomResourceSubresourceStatus{}, internal, nil)
		status := customresource.NewStatusStrategy(strategy)
		resource := func() map[string]any {
			obj := g.fields(props, 4).(map[string]any)
			if g.in(50) {
				obj["spec"] = map[string]any{"replicas": g.any(1)}
			}
			if g.in(50) {
				obj["status"] = map[string]any{"replicas": g.any(1), "selector": g.any(1)}
			}
			obj["apiVersion"], obj["kind"] = "example.com/v1", "Thing"
			obj["metadata"] = map[string]any{"name": "n", "resourceVersion": "1"}
			return obj
		}
		for range 10 {
			c := &comparison{T: t, props: props, up: up, our: our}
			obj, old := resource(), resource()
			if g.in(50) {
				if edited, ok := g.edit(props, obj).(map[string]any); ok {
					old = edited
				}
				old["apiVersion"], old["kind"], old["metadata"] = obj["apiVersion"], obj["kind"], obj["metadata"]
			}
			x, was := &unstructured.Unstructured{Object: obj}, &unstructured.Unstructured{Object: old}
			ctx := context.Background()
			c.errors("create", obj, nil, our.Validate(obj, nil), strategy.Validate(ctx, x))
			c.errors("update", obj, old, our.Validate(obj, old), strategy.ValidateUpdate(ctx, x, was))
			c.errors("status", obj, old, statusErrors(our, obj, old), status.ValidateUpdate(ctx, x, was))
		}
		if t.Failed() {
			t.Fatalf("case %d", i)
		}
	}
}

// statusErrors returns the schema's errors for an update of the status.
func statusErrors(s *schema.Schema, obj, old map[string]any) field.ErrorList {
	errs, _ := s.ValidateStatus(context.Background(), nil, obj, old, nil) // the context does not end
	return errs
}
