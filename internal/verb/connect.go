package verb

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Connect runs admission for a connection to the named object. options is a pointer to a Go value of the given kind
// with the client's parameters, in the object's group and version if kind has none; fresh returns an empty value.
// Changes that admission makes to the options have no effect.
func (v *Verbs) Connect(
	ctx context.Context, c *Call, kind metav1.GroupVersionKind, options any, fresh func() any,
) error {
	a := v.admission.attributes(ctx, c, admit.Connect, c.Name, nil)
	a.Kind.Kind, a.Options = kind.Kind, nil
	if kind.Version != "" {
		a.Kind.Group, a.Kind.Version = kind.Group, kind.Version
	}
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
