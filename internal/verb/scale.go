package verb

import (
	"context"
	"fmt"
	"math"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// The scale subresource is a view of three fields of an object as an autoscaling/v1 Scale. Changing the view changes
// the object, under the object's own rules.

// Scale returns the scale of an entry in the call's version.
func (r *Reader) Scale(c *Call, e *watchcache.Entry) (*autoscalingv1.Scale, error) {
	obj, err := r.Object(c, e)
	if err != nil {
		return nil, err
	}
	scale, found, err := scaleOf(obj, c.Version.Scale)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, apierrors.NewInternalError(
			fmt.Errorf("the spec replicas field %q does not exist", c.Version.Scale.SpecReplicasPath))
	}
	return scale, nil
}

// ReplaceScale replaces the scale of the named object by the one in body.
func (v *Verbs) ReplaceScale(
	ctx context.Context, c *Call, body Body, o metav1.UpdateOptions,
) (*autoscalingv1.Scale, error) {
	typed := func() any { return &autoscalingv1.Scale{} }
	obj, problems, err := decodeBody(ctx, body, true, scaleKind, typed)
	if err == nil {
		err = v.decoder.sameKind(obj, scaleKind)
	}
	if err == nil {
		problems, err = readInto(obj, typed(), scaleKind, body, problems)
	}
	if err == nil {
		err = reportAs(ctx, scaleKind, obj, problems, fieldValidation(o.FieldValidation))
	}
	if err == nil {
		err = c.matches(obj)
	}
	if err != nil {
		return nil, err
	}
	return v.changeScale(ctx, c, o,
		func(object.Object) (object.Object, error) { return runtime.DeepCopyJSON(obj), nil })
}

// PatchScale patches the scale of the named object, or applies to it.
func (v *Verbs) PatchScale(
	ctx context.Context, c *Call, patch Patch, o metav1.PatchOptions,
) (*autoscalingv1.Scale, error) {
	if IsApply(patch.Type) {
		return v.applyScale(ctx, c, patch, o)
	}
	patch.into = func() any { return &autoscalingv1.Scale{} }
	return v.changeScale(ctx, c, updateOptionsOf(o), func(current object.Object) (object.Object, error) {
		return v.patchedScale(ctx, c, current, patch, fieldValidation(o.FieldValidation))
	})
}

// patchedScale returns what the patch makes of the current Scale, which it does not change.
func (v *Verbs) patchedScale(
	ctx context.Context, c *Call, current object.Object, patch Patch, validation string,
) (object.Object, error) {
	obj, problems, err := patch.applyTo(ctx, current, validation)
	if err != nil {
		return nil, err
	}
	invalid := func(why string) error {
		return patch.invalid(ctx, current, why)
	}
	if patch.Type != types.StrategicMergePatchType { // see normalizePatched
		if why := v.decoder.unlike(kindOf(obj), scaleKind); why != nil {
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
		return nil, invalid(strictText(problems))
	}
	warnStrict(ctx, problems)
	return obj, nil
}

// applyScale is server-side apply of a scale.
func (v *Verbs) applyScale(
	ctx context.Context, c *Call, patch Patch, options metav1.PatchOptions,
) (*autoscalingv1.Scale, error) {
	applied, _, err := decodeApply(patch, false)
	if err != nil {
		return nil, err
	}
	force := options.Force != nil && *options.Force
	return v.rescale(ctx, c, updateOptionsOf(options),
		func(own *apply.Ownership, current object.Object) (object.Object, error) {
			return own.Apply(current, runtime.DeepCopyJSON(applied), options.FieldManager, force, v.now())
		})
}

// changeScale replaces an object's scale by what change makes of the current one.
func (v *Verbs) changeScale(
	ctx context.Context, c *Call, o metav1.UpdateOptions, change func(object.Object) (object.Object, error),
) (*autoscalingv1.Scale, error) {
	return v.rescale(ctx, c, o, func(own *apply.Ownership, current object.Object) (object.Object, error) {
		next, err := change(runtime.DeepCopyJSON(current))
		if err != nil {
			return nil, err
		}
		// Who writes owns what the Go type writes, which does not mention 0.
		typed, err := typedScale(next)
		if err != nil {
			return nil, err
		}
		said, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			return nil, err
		}
		v.tracker.track(own, current, said, c.manager(o.FieldManager))
		entries := object.Meta(said)["managedFields"]
		object.SetOrDelete(object.Meta(next), "managedFields", entries, entries != nil)
		return next, nil
	})
}

// rescale runs a change of the scale as an update of the object, by the object's own rules. The scale has managedFields
// of its own, made from the object's entries that own the replicas, and given back to them afterwards.
func (v *Verbs) rescale(
	ctx context.Context, c *Call, o metav1.UpdateOptions,
	change func(own *apply.Ownership, current object.Object) (object.Object, error),
) (*autoscalingv1.Scale, error) {
	main := *c
	main.Subresource, main.through = "", "scale"
	own := apply.NewScaleOwnership()
	res, err := v.Edit(ctx, &main, o, func(e *watchcache.Entry, old object.Object) (object.Object, error) {
		current, err := scaleObject(old, c.Version.Scale)
		if err != nil {
			return nil, err
		}
		if _, found, _ := unstructured.NestedInt64(old, splitPath(c.Version.Scale.SpecReplicasPath)...); !found {
			unstructured.RemoveNestedField(current, "spec", "replicas") // the change must set it
		}
		entries, err := apply.ScaleEntries(c.Resource, c.Version, old)
		if err != nil {
			return nil, err
		}
		object.SetOrDelete(object.Meta(current), "managedFields", entries, len(entries) > 0)
		a := v.admission.admissionAttributes(ctx, &main, admit.Update, c.Name, &o, isDryRun(o.DryRun))
		a.Old = current
		if a.Object, err = change(own, current); err != nil {
			return nil, err
		}
		if err := v.admission.mutate(ctx, &main, a); err != nil {
			return nil, err
		}
		next := a.Object
		obj, err := c.scaled(old, next)
		if err != nil {
			return nil, err
		}
		if err := v.checkUID(c, obj, e.UID); err != nil {
			return nil, err
		}
		return obj, apply.TakeScaleEntries(c.Resource, c.Version, obj, next)
	})
	if err != nil {
		return nil, err
	}
	scale, _, err := scaleOf(res.Object, c.Version.Scale)
	return scale, err
}

// scaled returns old with the replicas of a Scale that a client sent.
func (c *Call) scaled(old, scale object.Object) (object.Object, error) {
	if err := c.checkScale(scale); err != nil {
		return nil, err
	}
	path := c.Version.Scale.SpecReplicasPath
	replicas, found, err := unstructured.NestedInt64(scale, "spec", "replicas")
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if !found {
		if _, found, _ = unstructured.NestedInt64(old, splitPath(path)...); !found {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", path))
		}
	}
	obj := runtime.DeepCopyJSON(old)
	if err := unstructured.SetNestedField(obj, replicas, splitPath(path)...); err != nil {
		return nil, err
	}
	for _, key := range []string{"resourceVersion", "uid"} {
		if v := object.String(object.Meta(scale), key); v != "" {
			object.Meta(obj)[key] = v
		}
	}
	return obj, nil
}

var scaleKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// typedScale decodes a Scale that a client sent.
func typedScale(scale object.Object) (*autoscalingv1.Scale, error) {
	typed := &autoscalingv1.Scale{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(codec.AppendJSON(nil, scale), typed); err != nil {
		return nil, codec.Unhandled(scale, err, scaleKind)
	}
	return typed, nil
}

// checkScale returns what is wrong with a Scale that a client sent.
func (c *Call) checkScale(scale object.Object) error {
	typed, err := typedScale(scale)
	if err != nil {
		return err
	}
	if err := c.matches(scale); err != nil {
		return err
	}
	if n := typed.Spec.Replicas; n < 0 && !c.Resource.Custom() { // a custom object's own validation says so
		return apierrors.NewInvalid(scaleKind.GroupKind(), c.Name,
			field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), n, "must be greater than or equal to 0")})
	}
	return nil
}

// scaleOf returns the Scale of an object; found is false if the object has no spec replicas.
func scaleOf(obj object.Object, p *catalog.Scale) (scale *autoscalingv1.Scale, found bool, err error) {
	spec, found, err := unstructured.NestedInt64(obj, splitPath(p.SpecReplicasPath)...)
	if err != nil {
		return nil, false, err
	}
	status, _, err := unstructured.NestedInt64(obj, splitPath(p.StatusReplicasPath)...)
	if err != nil {
		return nil, false, err
	}
	if spec > math.MaxInt32 || spec < math.MinInt32 || status > math.MaxInt32 || status < math.MinInt32 {
		return nil, false,
			apierrors.NewInternalError(fmt.Errorf("the replicas of %v do not fit into 32 bits", obj["kind"]))
	}
	var labels string
	if p.Selector != nil {
		labels = p.Selector(obj)
	} else if p.LabelSelectorPath != "" {
		if labels, _, err = unstructured.NestedString(obj, splitPath(p.LabelSelectorPath)...); err != nil {
			return nil, false, err
		}
	}
	meta := access(obj)
	return &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: "Scale", APIVersion: "autoscaling/v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: meta.GetName(), Namespace: meta.GetNamespace(), UID: meta.GetUID(),
			ResourceVersion: meta.GetResourceVersion(), CreationTimestamp: meta.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(spec)},
		Status: autoscalingv1.ScaleStatus{Replicas: int32(status), Selector: labels},
	}, found, nil
}

// scaleObject is scaleOf as decoded JSON.
func scaleObject(obj object.Object, p *catalog.Scale) (object.Object, error) {
	scale, _, err := scaleOf(obj, p)
	if err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(scale)
}
