package verb

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// A Patch is the body of a PATCH, with its media type.
type Patch struct {
	Type types.PatchType
	Data []byte

	into func() any // makes a Go value of what is patched; nil for a custom kind
}

// Patch applies a JSON patch, a merge patch or a strategic merge patch to the named object.
func (v *Verbs) Patch(
	ctx context.Context, c *Call, patch Patch, o metav1.PatchOptions,
) (*Result, error) {
	own, err := v.tracker.ownership(ctx, c)
	if err != nil {
		return nil, err
	}
	validation := fieldValidation(o.FieldValidation)
	patch.into = c.Version.New
	return v.Edit(ctx, c, updateOptionsOf(o), func(_ *watchcache.Entry, old object.Object) (object.Object, error) {
		obj, problems, err := patch.applyTo(ctx, old, validation)
		if err != nil {
			return nil, err
		}
		more, err := v.normalizePatched(c, patch.Type, obj)
		if err != nil {
			return nil, patch.invalid(ctx, old, err.Error())
		}
		if problems = append(problems, more...); len(problems) > 0 {
			if validation == metav1.FieldValidationStrict {
				return nil, patch.invalid(ctx, old, strictText(problems))
			}
			if validation == metav1.FieldValidationWarn {
				warnStrict(ctx, problems)
			}
		}
		if err := c.matches(obj); err != nil {
			return nil, err
		}
		v.tracker.track(own, old, obj, c.manager(o.FieldManager))
		return obj, nil
	})
}

// updateOptionsOf returns the options of the update that a patch amounts to.
func updateOptionsOf(o metav1.PatchOptions) metav1.UpdateOptions {
	return metav1.UpdateOptions{DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation}
}

// applyTo returns what the patch makes of the current object, which it does not change, with the problems of the patch
// itself (repeated fields).
func (p Patch) applyTo(
	ctx context.Context, current object.Object, validation string,
) (object.Object, []string, error) {
	switch p.Type {
	case types.JSONPatchType:
		var problems []string
		if validation != metav1.FieldValidationIgnore {
			var err error
			if problems, err = apply.CheckJSONPatch(p.Data); err != nil {
				return nil, nil, err
			}
		}
		v, err := apply.JSONPatch(ctx, codec.CloneObject(current), p.Data)
		if err != nil {
			return nil, nil, err
		}
		obj, ok := v.(object.Object)
		if !ok {
			why := fmt.Sprintf("json: cannot unmarshal %s into Go value of type map[string]interface {}", jsonKind(v))
			return nil, nil, invalidPatchText(string(codec.AppendJSON(nil, v)), why)
		}
		return p.likeTyped(obj, current), problems, nil
	default:
		var change object.Object
		problems, err := strictMergePatch(p.Data, &change, validation)
		switch {
		case err == nil:
		case p.Type == types.StrategicMergePatchType:
			return nil, nil, apierrors.NewBadRequest(err.Error())
		default:
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		v := codec.CloneObject(current)
		if p.Type == types.StrategicMergePatchType {
			obj, err := apply.StrategicMerge(v, change, p.into())
			return obj, problems, err
		}
		obj, ok := apply.MergePatch(v, change).(object.Object)
		if !ok {
			return nil, nil, errNotAnObject
		}
		return p.likeTyped(obj, current), problems, nil
	}
}

// likeTyped gives the result of a patch of a built-in kind that has removed its kind or version what it has in
// Kubernetes then: the kind comes from the Go type, and without a version the type is one that has another name for
// metadata.
func (p Patch) likeTyped(obj, current object.Object) object.Object {
	if p.into == nil {
		return obj
	}
	if object.String(obj, "apiVersion") == "" {
		obj["apiVersion"] = current["apiVersion"]
		delete(obj, "metadata")
	}
	if object.String(obj, "kind") == "" {
		obj["kind"] = current["kind"]
	}
	return obj
}

// normalizePatched is normalize for the result of a patch.
func (v *Verbs) normalizePatched(c *Call, kind types.PatchType, obj object.Object) ([]string, error) {
	if c.Version.New == nil {
		if meta, ok := obj["metadata"].(object.Object); ok {
			if entries, ok := meta["managedFields"].([]any); ok && len(entries) == 0 {
				delete(meta, "managedFields") // a patch does not end tracking of a custom object
			}
		}
		return c.normalize(obj)
	}
	if kind == types.StrategicMergePatchType { // in Kubernetes the Go type says what it is
		obj["kind"], obj["apiVersion"] = c.Resource.Kind, c.APIVersion()
	} else if why := v.decoder.unlike(kindOf(obj), c.Kind()); why != nil {
		return nil, why
	}
	return c.normalize(obj)
}

func strictMergePatch(patch []byte, into *object.Object, validation string) ([]string, error) {
	strict, err := kjson.UnmarshalStrict(patch, into)
	if err != nil {
		return nil, err
	}
	if validation == metav1.FieldValidationIgnore {
		return nil, nil
	}
	var problems []string
	for _, e := range strict {
		problems = append(problems, e.Error())
	}
	return problems, nil
}

// invalid refuses a patch because of what it makes of the current object, which the error shows. It is called for
// an object that has been changed since, so the patch is applied once more.
func (p Patch) invalid(ctx context.Context, current object.Object, why string) error {
	obj, _, _ := p.applyTo(ctx, current, metav1.FieldValidationIgnore)
	if p.Type == types.StrategicMergePatchType {
		var change object.Object
		_ = kjson.UnmarshalCaseSensitivePreserveInts(p.Data, &change) // it went well before
		// Kube goes from the map to the Go type without JSON in between, which words errors in another way.
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, p.into()); err != nil {
			why = err.Error()
		}
		return invalidPatchText(fmt.Sprintf("%+v", change), why)
	}
	return invalidPatchText(string(codec.AppendJSON(nil, obj)), why)
}

func invalidPatchText(doc, why string) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "",
		field.ErrorList{field.Invalid(field.NewPath("patch"), doc, why)})
}
