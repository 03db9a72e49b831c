package verb

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
	"github.com/bowsprit/bowsprit/internal/verb/call"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// Answer responds to a POST to a virtual resource with an unstored object of the same kind, such as a review with its
// status. obj is the client's object, decoded, defaulted and changed by admission; Answer owns it. After its own
// validation, and before any effect, Answer calls validateAdmission with the object. For a subresource, Call.Name and
// Call.Namespace are those of the parent object.
type Answer func(
	ctx context.Context, c *Call, obj object.Object, validateAdmission func(object.Object) error,
) (object.Object, error)

// Virtual returns the call for the virtual kind behind a POST. For a subresource that kind differs from the parent's.
// Virtual returns an error if no Answer is registered.
func (v *Verbs) Virtual(c *Call) (*Call, error) {
	if v.answer(c) == nil {
		return nil, call.NotServed()
	}
	if c.Subresource == "" {
		return c, nil
	}
	return c.Of(c.Resource.Subresource(c.Subresource).Virtual), nil
}

func (v *Verbs) answer(c *Call) Answer { return v.answers[c.Target()] }

// Answer handles a POST to a virtual resource: a creation without the steps after admission. of is the result of
// Virtual.
func (v *Verbs) Answer(ctx context.Context, c, of *Call, body decode.Body, o metav1.CreateOptions) (*Result, error) {
	obj, _, err := v.decoder.decode(ctx, of, body, fieldValidation(o.FieldValidation))
	if err != nil {
		return nil, err
	}
	recordSent(c, obj)
	if err := objectmeta.MatchNamespace(obj, c.Namespace); err != nil {
		return nil, err
	}
	if c.Subresource == "" { // below an object, its metadata may name the intended object
		objectmeta.WipeSystemFields(object.Meta(obj))
	}
	own, err := v.tracker.ownership(ctx, of.Under(c.Subresource))
	if err != nil {
		return nil, err
	}
	v.tracker.track(own, nil, obj, manager(c, o.FieldManager))
	a := v.admission.attributesVirtual(ctx, c, of, &o, obj)
	if err := v.admission.chain.Mutate(ctx, a); err != nil {
		return nil, err
	}
	out, err := v.answer(c)(ctx, c, a.Object, func(obj object.Object) error {
		obj["apiVersion"], obj["kind"] = of.APIVersion(), of.Resource.Kind
		a.Object = obj
		return v.admission.chain.Validate(ctx, a)
	})
	if err != nil {
		return nil, err
	}
	out["apiVersion"], out["kind"] = of.APIVersion(), of.Resource.Kind
	return &Result{Object: out}, nil
}

// attributesVirtual returns the admission attributes of obj, which has the kind of call of, as a write to c.
func (ad *admission) attributesVirtual(
	ctx context.Context, c, of *Call, o *metav1.CreateOptions, obj object.Object,
) *admit.Attributes {
	a := ad.attributes(ctx, c, admit.Create, named(c, obj), o)
	a.Kind, a.Object = of.Kind(), obj
	if c.Subresource != "" {
		a.Convert = func(_ context.Context, obj object.Object, _, _ *catalog.Version) (object.Object, error) {
			return obj, nil
		}
		a.Normalize = func(_ *catalog.Version, obj object.Object) error { _, err := normalize(of, obj); return err }
	}
	return a
}

// named returns the name of a POST's object for admission: from the path, or else from the object.
func named(c *Call, obj object.Object) string {
	if c.Name != "" {
		return c.Name
	}
	return object.String(object.Meta(obj), "name")
}
