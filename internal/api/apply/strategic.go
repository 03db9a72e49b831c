package apply

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// StrategicMerge applies a strategic merge patch. original and patch are decoded JSON owned by the caller. typ is a
// value of the kind's Go type (corev1.ConfigMap{} or a pointer to it); its tags define how lists merge. The error is a
// *apierrors.StatusError where kube-apiserver returns one, and a 422 if the lists would take too long to merge.
//
// The library panics at some directives with values of wrong types ($retainKeys with objects), and kube-apiserver then
// closes the connection. Here they are bad requests.
func StrategicMerge(original, patch map[string]any, typ any) (out map[string]any, err error) {
	defer func() {
		if recover() != nil {
			out, err = nil, apierrors.NewBadRequest("a directive of the patch has a value of a wrong type")
		}
	}()
	meta, err := strategicpatch.NewPatchMetaFromStruct(typ)
	if err != nil {
		return nil, err
	}
	if err := checkMerging(original, patch, meta); err != nil {
		return nil, err
	}
	out, err = strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(original, patch, meta)
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
