package decode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

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
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
)

// Patch is the body of a PATCH, with its media type.
type Patch struct {
	Type types.PatchType
	Data []byte
	// Into returns a new Go value of the patched kind; nil for a custom kind. The verbs set it.
	Into func() any
	// Sensitive lists the fields that errors must not show; the verbs set it.
	Sensitive *sensitive.Fields
}

// IsApply reports whether the patch is server-side apply, in YAML or CBOR.
func (p Patch) IsApply() bool {
	return p.Type == types.ApplyYAMLPatchType || p.Type == types.ApplyCBORPatchType
}

// Check returns an error if the body is not a document of the patch's type.
func (p Patch) Check() error {
	switch {
	case p.Type == types.ApplyCBORPatchType:
		var doc any
		if err := codec.UnmarshalCBOR(p.Data, &doc); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
	case json.Valid(p.Data):
	case p.Type == types.ApplyYAMLPatchType:
		if _, err := codec.FromYAML(p.Data); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("error encoding patch: %v", err))
		}
	default:
		return apierrors.NewBadRequest("invalid JSON patch")
	}
	return nil
}

// Applied decodes the body of an apply. repeated is the error about repeated keys, which are checked only if strict is
// set.
func (p Patch) Applied(strict bool) (applied object.Object, repeated, err error) {
	if p.Type == types.ApplyCBORPatchType {
		err = codec.UnmarshalCBOR(p.Data, &applied)
		if applied == nil {
			applied = object.Object{}
		}
	} else {
		applied, repeated, err = codec.DecodeApply(p.Data, strict)
	}
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	return applied, repeated, nil
}

// ApplyTo returns the patched object and the problems of the patch itself (repeated fields). It does not change
// current.
func (p Patch) ApplyTo(
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
			why := fmt.Sprintf("json: cannot unmarshal %s into Go value of type map[string]interface {}", objectmeta.JSONKind(v))
			if p.Sensitive != nil {
				v = sensitive.Omitted
			}
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
			obj, err := apply.StrategicMerge(v, change, p.Into())
			return obj, problems, err
		}
		if change == nil { // null
			return nil, nil, apierrors.NewBadRequest("Invalid JSON Patch")
		}
		obj, ok := apply.MergePatch(v, change).(object.Object)
		if !ok {
			return nil, nil, errors.New("the stored value is not a JSON object")
		}
		return p.likeTyped(obj, current), problems, nil
	}
}

// likeTyped imitates Kubernetes for a patch that removes the kind or version of a built-in object. The kind comes from
// the Go type. Without a version, Kubernetes decodes into a type that names the metadata differently, so the metadata
// is lost.
func (p Patch) likeTyped(obj, current object.Object) object.Object {
	if p.Into == nil {
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

// Invalid returns the error for a patch with an invalid result, and shows that result. The caller may have changed its
// copy, so Invalid applies the patch again.
func (p Patch) Invalid(ctx context.Context, current object.Object, why string) error {
	if p.Type == types.StrategicMergePatchType {
		var change object.Object
		_ = kjson.UnmarshalCaseSensitivePreserveInts(p.Data, &change) // decoding succeeded before
		// Applying removes directives and nulls from the patch; Kubernetes shows the rest.
		obj, _ := apply.StrategicMerge(codec.CloneObject(current), change, p.Into())
		if err := quantity.Object(reflect.TypeOf(p.Into()), obj); err != nil {
			return invalidPatchText(fmt.Sprintf("%+v", change), err.Error())
		}
		// Kubernetes converts the map to the Go type without JSON in between, which changes the wording of errors.
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, p.Into()); err != nil {
			why = err.Error()
		}
		return invalidPatchText(fmt.Sprintf("%+v", change), why)
	}
	obj, _, _ := p.ApplyTo(ctx, current, metav1.FieldValidationIgnore)
	return invalidPatchText(string(codec.AppendJSON(nil, p.Sensitive.MaskObject(obj))), why)
}

func invalidPatchText(doc, why string) error {
	return invalid.New(schema.GroupKind{}, "",
		field.ErrorList{field.Invalid(field.NewPath("patch"), doc, why)})
}
