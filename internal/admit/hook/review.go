package hook

import (
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/admit/expr"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// encodeReview returns the AdmissionReview for a write.
func encodeReview(version, uid string, a *admit.Attributes, object shown) []byte {
	request := expr.Request(a, object.target.Resource, object.target.Kind)
	request["uid"] = uid
	request["object"], request["oldObject"] = orNull(object.obj), orNull(object.old)
	return codec.AppendJSON(nil, map[string]any{
		"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/" + version, "request": request,
	})
}

func orNull(obj map[string]any) any {
	if obj == nil {
		return nil
	}
	return obj
}

// verdict is a webhook's response, in either version.
type verdict struct {
	allowed     bool
	result      *metav1.Status
	patch       []byte
	patchType   admissionv1.PatchType
	annotations map[string]string
	warnings    []string
}

// decodeError means that a response is not an AdmissionReview. Kubernetes counts that as a failure of the call.
type decodeError struct{ err error }

func (e *decodeError) Error() string { return e.err.Error() }

// reviews decodes responses like Kubernetes' clients, for the same errors.
var reviews = sync.OnceValue(func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionv1.AddToScheme, admissionv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // inconsistent types
		}
	}
	return serializer.NewCodecFactory(scheme).LegacyCodec(admissionv1.SchemeGroupVersion,
		admissionv1beta1.SchemeGroupVersion)
})

// decodeReview decodes and checks the response to an AdmissionReview of the given version and uid.
func decodeReview(version, uid string, mutating bool, raw []byte) (*verdict, error) {
	if version == "v1beta1" {
		var review admissionv1beta1.AdmissionReview
		if err := decodeInto(raw, &review); err != nil {
			return nil, err
		}
		return readBeta(&review, mutating)
	}
	var review admissionv1.AdmissionReview
	if err := decodeInto(raw, &review); err != nil {
		return nil, err
	}
	return readStable(&review, uid, mutating)
}

func decodeInto(raw []byte, into runtime.Object) error {
	if _, _, err := reviews().Decode(raw, nil, into); err != nil {
		return &decodeError{err}
	}
	return nil
}

func readStable(review *admissionv1.AdmissionReview, uid string, mutating bool) (*verdict, error) {
	r := review.Response
	want := admissionv1.SchemeGroupVersion.WithKind("AdmissionReview")
	switch got := review.GroupVersionKind(); {
	case r == nil:
		return nil, fmt.Errorf("webhook response was absent")
	case string(r.UID) != uid:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, r.UID)
	case got != want:
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want.String(), got.String())
	case !mutating && len(r.Patch) > 0:
		return nil, fmt.Errorf("validating webhook may not return response.patch")
	case !mutating && r.PatchType != nil:
		return nil, fmt.Errorf("validating webhook may not return response.patchType")
	case len(r.Patch) > 0 && r.PatchType == nil:
		return nil, fmt.Errorf("webhook returned response.patch but not response.patchType")
	case len(r.Patch) == 0 && r.PatchType != nil:
		return nil, fmt.Errorf("webhook returned response.patchType but not response.patch")
	case r.PatchType != nil && *r.PatchType == "":
		return nil, fmt.Errorf("webhook returned invalid response.patchType of %q", *r.PatchType)
	}
	v := &verdict{allowed: r.Allowed, result: r.Result, annotations: r.AuditAnnotations, warnings: r.Warnings}
	if mutating && r.PatchType != nil {
		v.patch, v.patchType = r.Patch, *r.PatchType
	}
	return v, nil
}

// readBeta checks less: webhooks of the old version were never required to comply.
func readBeta(review *admissionv1beta1.AdmissionReview, mutating bool) (*verdict, error) {
	r := review.Response
	if r == nil {
		return nil, fmt.Errorf("webhook response was absent")
	}
	v := &verdict{allowed: r.Allowed, result: r.Result, annotations: r.AuditAnnotations, warnings: r.Warnings}
	if mutating && len(r.Patch) > 0 {
		v.patch, v.patchType = r.Patch, admissionv1.PatchTypeJSONPatch
	}
	return v, nil
}
