package convert

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// reviewGroup is the group of ConversionReview, in both of its versions.
const reviewGroup = "apiextensions.k8s.io"

// reviewVersion returns the first supported version of ConversionReview in the definition's list.
func reviewVersion(wanted []string) (string, error) {
	for _, v := range wanted {
		if v == "v1" || v == "v1beta1" {
			return v, nil
		}
	}
	return "", errors.New("no supported conversion review versions")
}

// appendReview appends the ConversionReview request for objs in version apiVersion.
func appendReview(dst []byte, version, uid, apiVersion string, objs []object.Object) []byte {
	dst = append(dst, `{"kind":"ConversionReview","apiVersion":"`+reviewGroup+`/`...)
	dst = append(dst, version...)
	dst = append(dst, `","request":{"uid":`...)
	dst = strconv.AppendQuote(dst, uid)
	dst = append(dst, `,"desiredAPIVersion":`...)
	dst = strconv.AppendQuote(dst, apiVersion)
	dst = append(dst, `,"objects":[`...)
	for i, obj := range objs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = codec.AppendJSON(dst, obj)
	}
	// Kubernetes includes the empty response; some webhooks fill it in and return the whole review.
	return append(dst, `]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}`...)
}

// parseReply returns the encoded converted objects of a response. version and uid are those of the request.
//
// As in Kubernetes, the uid and kind of v1beta1 replies are not checked: webhooks of that age omit them.
func parseReply(answer []byte, version, uid string) ([]runtime.RawExtension, error) {
	want := gvk.GroupVersionKind{Group: reviewGroup, Version: version, Kind: "ConversionReview"}
	review := &apiextensionsv1.ConversionReview{} // for v1beta1 too: its replies have the same form
	if err := kjson.UnmarshalCaseSensitivePreserveInts(answer, review); err != nil ||
		review.GroupVersionKind() != want {
		if review, err = decodeReview(answer, want); err != nil {
			return nil, err
		}
	}
	if version != "v1beta1" && review.GroupVersionKind() != want {
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want, review.GroupVersionKind())
	}
	response := review.Response
	if response == nil {
		return nil, errors.New("no response provided")
	}
	if version != "v1beta1" && string(response.UID) != uid {
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, response.UID)
	}
	if result := &response.Result; result.Status != metav1.StatusSuccess {
		if result.Message != "" {
			return nil, errors.New(foreign.Clip(result.Message, foreign.MaxMessage))
		}
		return nil, fmt.Errorf("response.result.status was '%s', not 'Success'",
			foreign.Clip(result.Status, foreign.MaxText))
	}
	return response.ConvertedObjects, nil
}

// decodeReview decodes an unusual response like Kubernetes' clients, which accept YAML, fill in a missing kind, and
// have their own error texts.
func decodeReview(answer []byte, want gvk.GroupVersionKind) (*apiextensionsv1.ConversionReview, error) {
	decoder, err := reviewDecoder()
	if err != nil {
		return nil, err
	}
	if want.Version == "v1" {
		review := &apiextensionsv1.ConversionReview{}
		_, _, err := decoder.Decode(answer, nil, review)
		return review, err
	}
	old := &apiextensionsv1beta1.ConversionReview{}
	if _, _, err := decoder.Decode(answer, nil, old); err != nil {
		return nil, err
	}
	review := &apiextensionsv1.ConversionReview{TypeMeta: old.TypeMeta}
	if old.Response != nil {
		review.Response = &apiextensionsv1.ConversionResponse{
			UID: old.Response.UID, ConvertedObjects: old.Response.ConvertedObjects, Result: old.Response.Result,
		}
	}
	return review, nil
}

// reviewDecoder decodes both versions of ConversionReview. It is created for the first unusual response.
var reviewDecoder = sync.OnceValues(func() (runtime.Decoder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1beta1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return serializer.NewCodecFactory(scheme).LegacyCodec(apiextensionsv1.SchemeGroupVersion,
		apiextensionsv1beta1.SchemeGroupVersion), nil
})

// decodeConverted decodes one converted object. Its error is that of Kubernetes' decoder.
func decodeConverted(rx runtime.RawExtension) (object.Object, error) {
	u := unstructured.Unstructured{}
	if err := u.UnmarshalJSON(rx.Raw); err != nil {
		return nil, err
	}
	return u.Object, nil
}
