package verb

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// Action handles a POST to a subresource with a body of another kind than its parent, such as the eviction of a pod.
type Action struct {
	// Kind is the kind of the body. Older lists equivalent older versions of it.
	Kind  schema.GroupVersionKind
	Older []string
	// New returns a fresh Go value of the kind.
	New func() any
	// Check validates a body of New's type, after admission has changed it and before admission validates it.
	Check func(c *Call, body any) error
	// Run carries out the action. Admission has already approved it, so the calls that Run makes of c skip admission.
	Run func(ctx context.Context, v *Verbs, c *Call, body any, o metav1.CreateOptions) error
}

// Action returns the action of the call's resource and subresource, or nil.
func (v *Verbs) Action(c *Call) *Action {
	if a, ok := v.actions[c.Target()]; ok {
		return &a
	}
	return nil
}

// Act decodes the body of an action, admits it and runs it.
func (v *Verbs) Act(ctx context.Context, c *Call, act *Action, body decode.Body, o metav1.CreateOptions) error {
	into := act.New()
	obj, problems, err := decode.Read(ctx, body, true, act.Kind, func() any { return into })
	if err != nil {
		return err
	}
	if got := decode.KindOf(obj); got.GroupKind() == act.Kind.GroupKind() && slices.Contains(act.Older, got.Version) {
		obj["apiVersion"] = act.Kind.GroupVersion().String()
	}
	if err := v.decoder.Same(obj, act.Kind); err != nil {
		return err
	}
	if problems, err = decode.Into(obj, into, act.Kind, body, problems); err != nil {
		return err
	}
	if err := decode.Report(ctx, act.Kind, obj, problems, fieldValidation(o.FieldValidation)); err != nil {
		return err
	}
	recordTyped(c, into, act.Kind)
	if err := objectmeta.MatchNamespace(obj, c.Namespace); err != nil {
		return err
	}
	a := v.admission.attributesOther(ctx, c, act.Kind, &o, obj)
	if err := v.admission.chain.Mutate(ctx, a); err != nil {
		return err
	}
	if a.Changed() {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(a.Object, into); err != nil {
			return err
		}
	}
	if err := act.Check(c, into); err != nil {
		return err
	}
	if err := v.admission.chain.Validate(ctx, a); err != nil {
		return err
	}
	return act.Run(ctx, v, c.Approved(), into, o)
}

// attributesOther returns the admission attributes for the creation of obj, which has another kind than the call's
// resource.
func (ad *admission) attributesOther(
	ctx context.Context, c *Call, kind schema.GroupVersionKind, o *metav1.CreateOptions, obj object.Object,
) *admit.Attributes {
	a := ad.attributes(ctx, c, admit.Create, named(c, obj), o)
	a.Kind, a.Object = kind, obj
	a.Convert = func(_ context.Context, obj object.Object, _, _ *catalog.Version) (object.Object, error) {
		return obj, nil
	}
	a.Normalize = func(*catalog.Version, object.Object) error { return nil }
	return a
}
