package apply

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// StrategicMerge applies a strategic merge patch. original and patch are decoded JSON, which the caller owns; typ is a
// value of the kind's Go type (corev1.ConfigMap{} or a pointer to one), whose tags say how lists merge. The error is a
// *apierrors.StatusError where kube-apiserver has one.
//
// The library panics at some directives with values of wrong types ($retainKeys with objects), for which kube-apiserver
// breaks the connection. They are bad requests here.
func StrategicMerge(original, patch map[string]any, typ any) (out map[string]any, err error) {
	defer func() {
		if recover() != nil {
			out, err = nil, apierrors.NewBadRequest("a directive of the patch has a value of a wrong type")
		}
	}()
	out, err = strategicpatch.StrategicMergeMapPatch(original, patch, typ)
	if err == nil {
		return out, nil
	}
	for _, bad := range []error{
		mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList,
		mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat,
	} {
		if errors.Is(err, bad) {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	for _, bad := range []error{mergepatch.ErrNoListOfLists, mergepatch.ErrPatchContentNotMatchRetainKeys} {
		if errors.Is(err, bad) {
			return nil,
				apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
					err.Error(), 0, false)
		}
	}
	return nil, err
}
