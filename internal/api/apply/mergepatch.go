package apply

import (
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kjson "sigs.k8s.io/json"
)

// MergePatch returns target with the JSON merge patch applied (RFC 7386). Both are decoded JSON. Maps of target and
// patch may be changed and become part of the result: the caller owns both.
//
// Where Kubernetes' library differs from the RFC, MergePatch follows it: nulls inside the arrays of a new field stay,
// nulls in objects inside these arrays are dropped.
func MergePatch(target, patch any) any {
	patchMap, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	targetMap, ok := target.(map[string]any)
	if !ok {
		dropNulls(patchMap)
		return patchMap
	}
	for name, value := range patchMap {
		if value == nil {
			delete(targetMap, name)
			continue
		}
		current := targetMap[name]
		if current == nil {
			dropNulls(value)
			targetMap[name] = value
			continue
		}
		if _, ok := current.(map[string]any); !ok {
			dropNulls(value)
		}
		targetMap[name] = MergePatch(current, value)
	}
	return targetMap
}

// dropNulls removes null fields from all objects in v.
func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			if item == nil {
				delete(v, name)
			} else {
				dropNulls(item)
			}
		}
	case []any:
		for _, item := range v {
			dropNulls(item)
		}
	}
}

// DecodeMergePatch decodes a merge patch. strict, for fieldValidation Warn and Strict, also reports duplicate fields
// and refuses a patch that is not an object. The error is a 400 with Kubernetes' text.
func DecodeMergePatch(patch []byte, strict bool) (decoded any, strictErrs []string, err error) {
	if strict {
		object := map[string]any{}
		errs, err := kjson.UnmarshalStrict(patch, &object)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		for _, err := range errs {
			strictErrs = append(strictErrs, err.Error())
		}
		if object == nil { // the patch is null
			return nil, nil, apierrors.NewBadRequest(jsonpatch.ErrBadJSONPatch.Error())
		}
		return object, strictErrs, nil
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(patch, &decoded); err != nil {
		return nil, nil, apierrors.NewBadRequest(jsonpatch.ErrBadJSONPatch.Error())
	}
	switch decoded := decoded.(type) {
	case map[string]any:
		return decoded, nil, nil
	case []any:
		dropNulls(decoded) // the result is an array, which the caller refuses
		return decoded, nil, nil
	default:
		return nil, nil, apierrors.NewBadRequest(jsonpatch.ErrBadJSONPatch.Error())
	}
}
