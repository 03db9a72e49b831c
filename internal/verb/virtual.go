package verb

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// Answer says what a POST to a virtual resource gets: an object of the same kind that is not stored, a review with its
// status. obj is what the client sent, decoded, defaulted and changed by admission; it belongs to the answer. When it
// has found nothing wrong with it, and before it does anything, it asks validateAdmission about the object.
// For a subresource Call.Name and Call.Namespace are those of the object that it stands below.
type Answer func(
	ctx context.Context, c *Call, obj object.Object, validateAdmission func(object.Object) error,
) (object.Object, error)

// Virtual returns what a POST to a virtual resource is about: the call as it would be for a resource of the virtual
// kind, which for a subresource is not the one that it stands below. It is an error if the server has no answer to it.
func (v *Verbs) Virtual(c *Call) (of *Call, err error) {
	if v.answer(c) == nil {
		return nil, NotServed()
	}
	in := *c
	if c.Subresource != "" {
		in.Resource = c.Resource.Subresource(c.Subresource).Virtual
		in.Version, in.Subresource = in.Resource.Storage, ""
	}
	return &in, nil
}

func (v *Verbs) answer(c *Call) Answer { return v.answers[c.Target()] }

// Answer answers a POST to a virtual resource: a creation without what comes after admission. of is what Virtual
// returned.
func (v *Verbs) Answer(ctx context.Context, c, of *Call, body decode.Body, o metav1.CreateOptions) (*Result, error) {
	obj, err := v.decoder.decode(ctx, of, body, fieldValidation(o.FieldValidation))
	if err != nil {
		return nil, err
	}
	c.recordSent(obj)
	if err := objectmeta.MatchNamespace(obj, c.Namespace); err != nil {
		return nil, err
	}
	if c.Subresource == "" { // below an object its metadata may say which one is meant
		objectmeta.WipeSystemFields(object.Meta(obj))
	}
	by := *of
	by.Subresource = c.Subresource
	own, err := v.tracker.ownership(ctx, &by)
	if err != nil {
		return nil, err
	}
	v.tracker.track(own, nil, obj, c.manager(o.FieldManager))
	a := v.admission.askedVirtual(ctx, c, of, &o, obj)
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

// askedVirtual is what admission is asked about obj, which is of the kind of call of, as a write to c.
func (ad *admission) askedVirtual(
	ctx context.Context, c, of *Call, o *metav1.CreateOptions, obj object.Object,
) *admit.Attributes {
	a := ad.admissionAttributes(ctx, c, admit.Create, named(c, obj), o)
	a.Kind, a.Object = of.Kind(), obj
	if c.Subresource != "" {
		a.Convert = func(_ context.Context, obj object.Object, _, _ *catalog.Version) (object.Object, error) {
			return obj, nil
		}
		a.Normalize = func(_ *catalog.Version, obj object.Object) error { _, err := of.normalize(obj); return err }
	}
	return a
}

// named returns the name under which admission is asked about a POST of obj: that of the path, or else the object's
// own.
func named(c *Call, obj object.Object) string {
	if c.Name != "" {
		return c.Name
	}
	return object.String(object.Meta(obj), "name")
}
