package verb

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
	"github.com/bowsprit/bowsprit/internal/verb/scale"
)

// The scale subresource shows three fields of an object as an autoscaling/v1 Scale. Changing the Scale changes the
// object, under the object's own rules.

// ReplaceScale replaces the scale of the named object by the Scale in body.
func (v *Verbs) ReplaceScale(
	ctx context.Context, c *Call, body decode.Body, o metav1.UpdateOptions,
) (*autoscalingv1.Scale, error) {
	sent := &autoscalingv1.Scale{}
	obj, problems, err := decode.Read(ctx, body, true, scale.Kind, func() any { return &autoscalingv1.Scale{} })
	if err == nil {
		err = v.decoder.Same(obj, scale.Kind)
	}
	if err == nil {
		problems, err = decode.Into(obj, sent, scale.Kind, body, problems)
	}
	if err == nil {
		err = decode.Report(ctx, scale.Kind, obj, problems, fieldValidation(o.FieldValidation))
	}
	if err == nil {
		recordTyped(c, sent, scale.Kind)
		err = matches(c, obj)
	}
	if err != nil {
		return nil, err
	}
	return v.changeScale(ctx, c, o, func(current object.Object) (object.Object, error) {
		return runtime.DeepCopyJSON(obj), v.checkUID(c, obj, object.String(object.Meta(current), "uid"))
	})
}

// PatchScale patches the scale of the named object, or applies to it.
func (v *Verbs) PatchScale(
	ctx context.Context, c *Call, patch decode.Patch, o metav1.PatchOptions,
) (*autoscalingv1.Scale, error) {
	if patch.IsApply() {
		return v.applyScale(ctx, c, patch, o)
	}
	patch.Into = func() any { return &autoscalingv1.Scale{} }
	return v.changeScale(ctx, c, updateOptionsOf(o), func(current object.Object) (object.Object, error) {
		return v.patchedScale(ctx, c, current, patch, fieldValidation(o.FieldValidation))
	})
}

// patchedScale returns the current Scale with the patch applied. It does not change current.
func (v *Verbs) patchedScale(
	ctx context.Context, c *Call, current object.Object, patch decode.Patch, validation string,
) (object.Object, error) {
	obj, problems, err := patch.ApplyTo(ctx, current, validation)
	if err != nil {
		return nil, err
	}
	invalid := func(why string) error {
		return patch.Invalid(ctx, current, why)
	}
	if patch.Type != types.StrategicMergePatchType { // see normalizePatched
		if why := v.decoder.Unlike(decode.KindOf(obj), scale.Kind); why != nil {
			return nil, invalid(why.Error())
		}
	}
	unknown, err := kjson.UnmarshalStrict(codec.AppendJSON(nil, obj), &autoscalingv1.Scale{},
		kjson.DisallowUnknownFields)
	if err != nil {
		return nil, invalid(err.Error())
	}
	if validation == metav1.FieldValidationIgnore {
		return obj, nil
	}
	for _, e := range unknown {
		problems = append(problems, e.Error())
	}
	if len(problems) > 0 && validation == metav1.FieldValidationStrict {
		return nil, invalid(decode.StrictText(problems))
	}
	decode.Warn(ctx, problems)
	return obj, nil
}

// applyScale is server-side apply of a scale.
func (v *Verbs) applyScale(
	ctx context.Context, c *Call, patch decode.Patch, options metav1.PatchOptions,
) (*autoscalingv1.Scale, error) {
	applied, _, err := patch.Applied(false)
	if err != nil {
		return nil, err
	}
	force := options.Force != nil && *options.Force
	return v.rescale(ctx, c, updateOptionsOf(options),
		func(own *apply.Ownership, current object.Object) (object.Object, error) {
			return own.Apply(current, runtime.DeepCopyJSON(applied), options.FieldManager, force, v.Now())
		})
}

// changeScale replaces an object's scale by the result of change.
func (v *Verbs) changeScale(
	ctx context.Context, c *Call, o metav1.UpdateOptions, change func(object.Object) (object.Object, error),
) (*autoscalingv1.Scale, error) {
	return v.rescale(ctx, c, o, func(own *apply.Ownership, current object.Object) (object.Object, error) {
		next, err := change(runtime.DeepCopyJSON(current))
		if err != nil {
			return nil, err
		}
		// The writer owns the fields that the Go type encodes, which omits 0.
		typed, err := scale.Typed(next)
		if err != nil {
			return nil, err
		}
		encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			return nil, err
		}
		v.tracker.track(own, current, encoded, manager(c, o.FieldManager))
		entries := object.Meta(encoded)["managedFields"]
		object.SetOrDelete(object.Meta(next), "managedFields", entries, entries != nil)
		return next, nil
	})
}

// rescale runs a change of the scale as an update of the object, under the object's own rules. The scale has its own
// managedFields: rescale builds them from the object's entries that own the replicas, and merges them back afterwards.
func (v *Verbs) rescale(
	ctx context.Context, c *Call, o metav1.UpdateOptions,
	change func(own *apply.Ownership, current object.Object) (object.Object, error),
) (*autoscalingv1.Scale, error) {
	w := v.begin(c.Under(""), o.DryRun)
	w.scale = true
	own := apply.NewScaleOwnership()
	res, err := w.edit(ctx, o, func(e *watchcache.Entry, old object.Object) (object.Object, error) {
		current, err := scale.Object(old, c.Version.Scale)
		if err != nil {
			return nil, err
		}
		if !scale.HasReplicas(old, c.Version.Scale) {
			if err := unstructured.SetNestedField(current, int64(scale.Unset), "spec", "replicas"); err != nil {
				return nil, err
			}
		}
		entries, err := apply.ScaleEntries(c.Resource, c.Version, old)
		if err != nil {
			return nil, err
		}
		object.SetOrDelete(object.Meta(current), "managedFields", entries, len(entries) > 0)
		a := w.attributesOf(ctx, admit.Update, c.Name, &o)
		a.Old = current
		if a.Object, err = change(own, current); err != nil {
			return nil, err
		}
		if err := w.mutate(ctx, a); err != nil {
			return nil, err
		}
		next := a.Object
		obj, err := scaled(c, old, next)
		if err != nil {
			return nil, err
		}
		if err := checkScaleUID(c, next, e.UID); err != nil {
			return nil, err
		}
		return obj, apply.TakeScaleEntries(c.Resource, c.Version, obj, next)
	})
	if err != nil {
		return nil, err
	}
	view, _, err := scale.Of(res.Object, c.Version.Scale)
	return view, err
}

// checkScaleUID compares the uid of a patched Scale with that of the stored object. The Scale of a custom object may
// have any uid, and the object keeps its own, as in Kubernetes.
func checkScaleUID(c *Call, sent object.Object, stored string) error {
	uid := object.String(object.Meta(sent), "uid")
	if uid == "" || uid == stored || c.Resource.Custom() {
		return nil
	}
	gr := c.GroupResource()
	gr.Resource += "/scale"
	//lint:ignore ST1005 kube's text
	why := fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, stored)
	return apierrors.NewConflict(gr, c.Name, why)
}

// scaled returns old with the replicas of the client's Scale.
func scaled(c *Call, old, sent object.Object) (object.Object, error) {
	if err := checkScale(c, sent); err != nil {
		return nil, err
	}
	return scale.Put(old, sent, c.Version.Scale)
}

// checkScale validates the client's Scale.
func checkScale(c *Call, sent object.Object) error {
	typed, err := scale.Typed(sent)
	if err != nil {
		return err
	}
	if err := matches(c, sent); err != nil {
		return err
	}
	if n := typed.Spec.Replicas; n < 0 && !c.Resource.Custom() { // a custom object's own validation checks this
		return invalid.New(scale.Kind.GroupKind(), c.Name,
			field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), n, "must be greater than or equal to 0")})
	}
	return nil
}
