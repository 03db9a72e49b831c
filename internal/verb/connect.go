package verb

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Connect asks admission about a connection to what stands for the named object. options, a pointer to a Go value of
// the given kind, is what the client asks for, and fresh returns an empty one. What admission changes of it changes
// nothing.
func (v *Verbs) Connect(ctx context.Context, c *Call, kind string, options any, fresh func() any) error {
	a := v.admission.admissionAttributes(ctx, c, admit.Connect, c.Name, nil)
	a.Kind.Kind, a.Options = kind, nil
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(options)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	obj["apiVersion"], obj["kind"] = a.Kind.GroupVersion().String(), a.Kind.Kind
	a.Object = obj
	a.Convert = func(_ context.Context, obj object.Object, _, _ *catalog.Version) (object.Object, error) {
		return obj, nil
	}
	a.Normalize = func(_ *catalog.Version, obj object.Object) error {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(obj, fresh())
	}
	if err := v.admission.chain.Mutate(ctx, a); err != nil {
		return err
	}
	return v.admission.chain.Validate(ctx, a)
}
