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

// An Action is what a POST to a subresource does that takes an object of another kind than the one that it stands
// below: the eviction of a pod.
type Action struct {
	// Kind of the body. Older are other versions of it that are as good.
	Kind  schema.GroupVersionKind
	Older []string
	// New returns a fresh Go value of the kind.
	New func() any
	// Check returns what is wrong with a body of New's type. It comes after admission has changed it and before
	// admission validates it.
	Check func(c *Call, body any) error
	// Run does what the body asks for. The calls that it makes of c are the server's own doing, about which admission
	// is not asked again.
	Run func(ctx context.Context, v *Verbs, c *Call, body any, o metav1.CreateOptions) error
}

// Action returns the action of the call's resource and subresource, nil if it has none.
func (v *Verbs) Action(c *Call) *Action {
	if a, ok := v.actions[c.Target()]; ok {
		return &a
	}
	return nil
}

// Act decodes the body of an action, asks admission about it, and runs it.
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
	c.recordTyped(into, act.Kind)
	if err := objectmeta.MatchNamespace(obj, c.Namespace); err != nil {
		return err
	}
	a := v.admission.askedOther(ctx, c, act.Kind, &o, obj)
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
	c.admitted = true
	return act.Run(ctx, v, c, into, o)
}

// askedOther is what admission is asked about the creation of obj, which is of another kind than the call's resource.
func (ad *admission) askedOther(
	ctx context.Context, c *Call, kind schema.GroupVersionKind, o *metav1.CreateOptions, obj object.Object,
) *admit.Attributes {
	a := ad.admissionAttributes(ctx, c, admit.Create, named(c, obj), o)
	a.Kind, a.Object = kind, obj
	a.Convert = func(_ context.Context, obj object.Object, _, _ *catalog.Version) (object.Object, error) {
		return obj, nil
	}
	a.Normalize = func(*catalog.Version, object.Object) error { return nil }
	return a
}
