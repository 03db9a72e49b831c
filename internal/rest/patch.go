package rest

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// patchTypes returns the content types that a PATCH of the call's kind may have. Strategic merge needs a Go type, which
// only built-in kinds have.
func (c *Call) patchTypes(ctx context.Context) []string {
	accepted := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if c.Version.New != nil {
		accepted = append(accepted, string(types.StrategicMergePatchType))
	}
	accepted = append(accepted, string(types.ApplyYAMLPatchType))
	if codec.IsCBOR(ctx, codec.CBOR) {
		accepted = append(accepted, string(types.ApplyCBORPatchType))
	}
	return accepted
}

// patchRequest reads what all kinds of patches have in common.
func (c *Call) patchRequest(r *http.Request) (types.PatchType, []byte, *metav1.PatchOptions, error) {
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	known := false
	for _, t := range c.patchTypes(r.Context()) {
		known = known || t == contentType
	}
	if !known {
		return "", nil, nil, codec.UnsupportedMediaType(c.patchTypes(r.Context())...)
	}
	if c.Name == "" {
		return "", nil, nil, c.nameless()
	}
	body, err := readBody(r)
	if err != nil {
		return "", nil, nil, err
	}
	options, err := patchOptions(r, types.PatchType(contentType))
	return types.PatchType(contentType), body, options, err
}

func (s *Server) servePatch(w http.ResponseWriter, r *http.Request, c *Call) error {
	media, err := c.negotiate(r)
	if err != nil {
		return err
	}
	kind, body, options, err := c.patchRequest(r)
	if err != nil {
		return err
	}
	var res *Result
	if isApply(kind) {
		res, err = s.Apply(r.Context(), c, kind, body, *options)
	} else {
		res, err = s.Patch(r.Context(), c, kind, body, *options)
	}
	if err != nil {
		return err
	}
	code := http.StatusOK
	if res.Created {
		code = http.StatusCreated
	}
	return s.writeObject(w, r, code, c, res, media)
}

// Patch applies a JSON patch, a merge patch or a strategic merge patch to the named object.
func (s *Server) Patch(
	ctx context.Context, c *Call, kind types.PatchType, patch []byte, o metav1.PatchOptions,
) (*Result, error) {
	own, err := s.ownership(ctx, c)
	if err != nil {
		return nil, err
	}
	validation := fieldValidation(o.FieldValidation)
	change := patchBody{kind, patch, c.Version.New}
	return s.replace(ctx, c, updateOptionsOf(o), func(_ *watchcache.Entry, old Object) (Object, error) {
		obj, problems, err := c.patched(ctx, change, old, validation)
		if err != nil {
			return nil, err
		}
		more, err := s.normalizePatched(c, kind, obj)
		if err != nil {
			return nil, c.invalidPatch(ctx, change, old, err.Error())
		}
		if problems = append(problems, more...); len(problems) > 0 {
			if validation == metav1.FieldValidationStrict {
				return nil, c.invalidPatch(ctx, change, old, strictText(problems))
			}
			if validation == metav1.FieldValidationWarn {
				c.warnStrict(ctx, problems)
			}
		}
		if err := c.matches(obj); err != nil {
			return nil, err
		}
		s.track(own, old, obj, c.manager(o.FieldManager))
		return obj, nil
	})
}

// updateOptionsOf returns the options of the update that a patch amounts to.
func updateOptionsOf(o metav1.PatchOptions) metav1.UpdateOptions {
	return metav1.UpdateOptions{DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation}
}

// patchBody is a patch as the client has sent it. into makes a Go value of what is patched, nil for a custom kind.
type patchBody struct {
	kind types.PatchType
	raw  []byte
	into func() any
}

// patched returns what the patch makes of the current object, which it does not change, with the problems of the patch
// itself (repeated fields).
func (c *Call) patched(ctx context.Context, p patchBody, current Object, validation string) (Object, []string, error) {
	switch p.kind {
	case types.JSONPatchType:
		var problems []string
		if validation != metav1.FieldValidationIgnore {
			var err error
			if problems, err = apply.CheckJSONPatch(p.raw); err != nil {
				return nil, nil, err
			}
		}
		v, err := apply.JSONPatch(ctx, codec.CloneObject(current), p.raw)
		if err != nil {
			return nil, nil, err
		}
		obj, ok := v.(Object)
		if !ok {
			why := fmt.Sprintf("json: cannot unmarshal %s into Go value of type map[string]interface {}", jsonKind(v))
			return nil, nil, invalidPatchText(string(codec.AppendJSON(nil, v)), why)
		}
		return obj, problems, nil
	default:
		var change Object
		problems, err := strictMergePatch(p.raw, &change, validation)
		switch {
		case err == nil:
		case p.kind == types.StrategicMergePatchType:
			return nil, nil, apierrors.NewBadRequest(err.Error())
		default:
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		v := codec.CloneObject(current)
		if p.kind == types.StrategicMergePatchType {
			obj, err := apply.StrategicMerge(v, change, p.into())
			return obj, problems, err
		}
		obj, ok := apply.MergePatch(v, change).(Object)
		if !ok {
			return nil, nil, errNotAnObject
		}
		return obj, problems, nil
	}
}

// normalizePatched is normalize for the result of a patch.
func (s *Server) normalizePatched(c *Call, kind types.PatchType, obj Object) ([]string, error) {
	if c.Version.New == nil {
		if meta, ok := obj["metadata"].(Object); ok {
			if entries, ok := meta["managedFields"].([]any); ok && len(entries) == 0 {
				delete(meta, "managedFields") // a patch does not end tracking of a custom object
			}
		}
		return c.normalize(obj)
	}
	if kind == types.StrategicMergePatchType { // in Kubernetes the Go type says what it is
		obj["kind"], obj["apiVersion"] = c.Resource.Kind, c.apiVersion()
	} else if why := s.unlike(kindOf(obj), c.gvk()); why != nil {
		return nil, why
	}
	return c.normalize(obj)
}

func strictMergePatch(patch []byte, into *Object, validation string) ([]string, error) {
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

// invalidPatch refuses a patch because of what it makes of the current object, which the error shows. It is called for
// an object that has been changed since, so the patch is applied once more.
func (c *Call) invalidPatch(ctx context.Context, p patchBody, current Object, why string) error {
	obj, _, _ := c.patched(ctx, p, current, metav1.FieldValidationIgnore)
	if p.kind == types.StrategicMergePatchType {
		var change Object
		_ = kjson.UnmarshalCaseSensitivePreserveInts(p.raw, &change) // it went well before
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
